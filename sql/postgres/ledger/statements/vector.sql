-- What needs the extension pgvector. This file is the last of the table, and the first of its statements
-- ends what is prepared without the extension (src/ledger/postgres/backend.h).
--
-- The question is turned into a vector once, not once per row. Nothing but a sort by distance: an index
-- of pgvector's would answer with some of the nearest.

-- fragment: question(parameter)
WITH asked AS MATERIALIZED (SELECT embedding_of({parameter}) AS vector)

-- name: vector_embed (ixt)
INSERT INTO embeddings ("offset", vector, embedding)
SELECT "offset", $2, embedding_of($3) FROM events WHERE "offset" = $1;

-- name: vector_missing (i) -> (ix)
SELECT "offset", vector FROM embeddings WHERE embedding IS NULL ORDER BY "offset" LIMIT $1;

-- name: vector_fill (ixt)
UPDATE embeddings SET embedding = embedding_of($3) WHERE "offset" = $1 AND vector = $2;

-- name: vector_nearest (ti) -> (ix)
{question: $1}
SELECT "offset", embeddings.vector FROM embeddings, asked
ORDER BY embedding_distance(embedding, asked.vector), "offset" LIMIT $2;

-- name: vector_nearest_filter ({matching_types} ti) -> (ix)
{question: $8}
SELECT "offset", embeddings.vector FROM asked, embeddings JOIN events USING ("offset") {matching}
ORDER BY embedding_distance(embedding, asked.vector), "offset" LIMIT $9;
