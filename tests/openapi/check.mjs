// check.mjs DOCUMENT ANSWERS: every answer that a test got (a line of JSON: method, target, status, type, body) is one that
// the document declares, and looks as it says.
import { readFileSync } from "node:fs";
import Ajv2020 from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

// Problems of the connection, which no route declares: they are the response `default`.
const OF_THE_CONNECTION = new Set([405, 414, 421, 431]);

const document = JSON.parse(readFileSync(process.argv[2], "utf8"));
const ajv = new Ajv2020.default({ strict: false, allErrors: true });
addFormats.default(ajv);
ajv.addSchema({ $id: "api", ...document });

const paths = Object.entries(document.paths).map(([path, methods]) => ({
    methods,
    pattern: new RegExp(`^${path.replace(/{\w+}/g, "[^/]+")}$`),
    pointer: `api#/paths/${path.replaceAll("~", "~0").replaceAll("/", "~1")}`,
}));

function escape(part) {
    return encodeURIComponent(part.replaceAll("~", "~0").replaceAll("/", "~1"));
}

function declared(operation, status) {
    if (String(status) in operation.responses) {
        return String(status);
    }
    return status >= 500 || OF_THE_CONNECTION.has(status) ? "default" : null;
}

function find(answer) {
    const target = answer.target.replace(/^http:\/\/[^/]*/, "").split("?")[0];
    const method = answer.method === "HEAD" ? "get" : answer.method.toLowerCase();
    const path = paths.find((p) => p.pattern.test(target) && method in p.methods);
    return path && { path, method, operation: path.methods[method] };
}

function resolve(response) {
    return "$ref" in response ? response.$ref.split("/").slice(1).reduce((o, k) => o[k], document) : response;
}

// What is wrong with an answer; null: nothing.
function wrong(answer) {
    const found = find(answer);
    if (!found) { // no such address: any problem, as an address that there is would answer
        return [400, 404, 405, 414, 421, 431].includes(answer.status) || answer.status >= 500 ? null : "answered without a route";
    }
    const code = declared(found.operation, answer.status);
    if (code === null) {
        return `status ${answer.status} is not declared`;
    }
    const response = resolve(found.operation.responses[code]);
    const type = (answer.type ?? "").split(";")[0];
    const media = response.content?.[type];
    if (!media) {
        return `type ${type} is not declared for ${answer.status}`;
    }
    if (answer.method === "HEAD" || !type.includes("json")) {
        return null;
    }
    const pointer = code === "default"
        ? "api#/components/responses/Problem"
        : `api#/paths/${escape(Object.keys(document.paths).find((p) => document.paths[p] === found.path.methods))}/${found.method}/responses/${code}`;
    const validate = ajv.getSchema(`${pointer}/content/${escape(type)}/schema`);
    return validate(JSON.parse(answer.body)) ? null : ajv.errorsText(validate.errors);
}

let count = 0;
let failed = 0;
for (const line of readFileSync(process.argv[3], "utf8").split("\n")) {
    if (line === "") {
        continue;
    }
    const answer = JSON.parse(line);
    const why = wrong(answer);
    count++;
    if (why !== null && failed++ < 10) {
        console.error(`${answer.method} ${answer.target}: ${answer.status}: ${why}\n  ${answer.body.slice(0, 300)}`);
    }
}
console.log(`${count} answers, ${failed} that the document does not describe`);
process.exit(failed > 0 ? 1 : 0);
