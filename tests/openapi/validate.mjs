// validate.mjs DOCUMENT: says what is wrong with an OpenAPI document, and fails.
import { readFileSync } from "node:fs";
import { Validator } from "@seriousme/openapi-schema-validator";

const document = JSON.parse(readFileSync(process.argv[2], "utf8"));
const result = await new Validator().validate(structuredClone(document));
if (!result.valid) {
    console.error(JSON.stringify(result.errors, null, 1));
    process.exit(1);
}

// What the schema of OpenAPI cannot say.
const ids = new Set();
for (const [path, methods] of Object.entries(document.paths)) {
    const named = [...path.matchAll(/{(\w+)}/g)].map((match) => match[1]);
    for (const [method, operation] of Object.entries(methods)) {
        const declared = operation.parameters.filter((p) => p.in === "path").map((p) => p.name);
        const where = `${method} ${path}`;
        if (ids.has(operation.operationId) || !/^[a-z][A-Za-z]+$/.test(operation.operationId)) {
            throw new Error(`${where}: operationId ${operation.operationId}`);
        }
        if (named.sort().join() !== declared.sort().join()) {
            throw new Error(`${where}: the path has ${named}, its parameters are ${declared}`);
        }
        ids.add(operation.operationId);
    }
}
console.log(`${ids.size} operations, ${Object.keys(document.components.schemas).length} schemas`);
