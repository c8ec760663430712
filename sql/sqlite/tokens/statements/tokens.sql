-- Tokens are few: all of them are read at once.

-- name: token_add
INSERT INTO tokens (token_id, name, scope, hash, created_at, expires_at, revoked_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0);

-- name: token_list
SELECT token_id, name, scope, hash, created_at, expires_at, revoked_at FROM tokens ORDER BY token_id;

-- name: token_revoke
-- The first time counts.
UPDATE tokens SET revoked_at = ?2 WHERE token_id = ?1 AND revoked_at = 0;
