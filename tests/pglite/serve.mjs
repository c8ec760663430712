// PostgreSQL with pgvector on a free loopback port, for as long as standard input stays open:
//
//   node tests/pglite/serve.mjs     prints the port
//
// PGlite is one session, whoever is connected: prepared statements of a client that has gone would
// meet those of the next. So every new client begins with a clean one, and only one at a time can
// do anything useful. Two may overlap for a moment, while the first one says goodbye.
import { PGlite } from '@electric-sql/pglite'
import { vector } from '@electric-sql/pglite-pgvector'
import { PGLiteSocketServer } from '@electric-sql/pglite-socket'

// Node 18, which Debian 12 has, knows Event but not this.
globalThis.CustomEvent ??= class CustomEvent extends Event {
  constructor(type, options = {}) {
    super(type, options)
    this.detail = options.detail ?? null
  }
}

const db = await PGlite.create({ extensions: { vector } })
const server = new PGLiteSocketServer({ db, host: '127.0.0.1', port: 0, maxConnections: 4 })
server.addEventListener('connection', () => db.exec('DISCARD ALL'))
await server.start()
console.log(server.getServerConn().replace(/.*:/, ''))

process.stdin.resume()
process.stdin.on('end', () => process.exit(0))
