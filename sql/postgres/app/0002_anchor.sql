-- version: 0.30.1
-- How far the logs of an application certainly reached, kept apart from them (src/app/core/anchor.h).
-- From here on stored numbers have a checksum, and each application says which format it has: programs that
-- know only bare numbers must not open it.
ALTER TABLE apps ADD COLUMN anchor text NOT NULL DEFAULT '';
