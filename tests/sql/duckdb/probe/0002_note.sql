-- version: 0.31.0
ALTER TABLE probe ADD COLUMN note TEXT;
