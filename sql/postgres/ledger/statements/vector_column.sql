-- The column of pgvector's type (src/ledger/postgres/vector.c).

-- script: vector_column
-- One block, one transaction, one process at a time.
DO $pawl$ DECLARE place text; BEGIN
    PERFORM pg_advisory_xact_lock(8098135966063132674);
    IF NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'vector') THEN
        IF NOT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector') THEN
            RETURN;
        END IF;
        CREATE EXTENSION IF NOT EXISTS vector;
    END IF;
    IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'embeddings'::regclass
        AND attname = 'embedding' AND NOT attisdropped) THEN
        RETURN;
    END IF;
    SELECT quote_ident(nspname) INTO place FROM pg_extension
        JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'vector';
    EXECUTE format('ALTER TABLE embeddings ADD COLUMN embedding %s.vector', place);
    CREATE INDEX idx_embeddings_missing ON embeddings ("offset") WHERE embedding IS NULL;
    EXECUTE format('CREATE OR REPLACE FUNCTION embedding_of(text) RETURNS %1$s.vector
        LANGUAGE sql IMMUTABLE PARALLEL SAFE AS ''SELECT $1::%1$s.vector''', place);
    EXECUTE format('CREATE OR REPLACE FUNCTION embedding_distance(%1$s.vector, %1$s.vector)
        RETURNS double precision LANGUAGE sql IMMUTABLE PARALLEL SAFE
        AS ''SELECT $1 OPERATOR(%1$s.<=>) $2''', place);
END $pawl$;

-- script: vector_probe
-- Raises an exception, which is an answer as well: no column, no pgvector.
SELECT embedding_distance(embedding, embedding_of('[1]')) FROM embeddings LIMIT 0;
