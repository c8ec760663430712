#!/usr/bin/env python3
"""Makes what a nats-server in operator mode and its clients need, without nsc: nats_creds.py DIR

  DIR/operator.conf   lines for the server's configuration
  DIR/user.creds      of an account that the server knows
  DIR/stranger.creds  of one that it does not
"""
import base64
import hashlib
import json
import subprocess
import sys

PREFIX = {"operator": 14 << 3, "account": 0, "user": 20 << 3}
SEED = 18 << 3


def crc16(data):
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = ((crc << 1) ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc


def encode(data):
    data += crc16(data).to_bytes(2, "little")
    return base64.b32encode(data).decode().rstrip("=")


def openssl(*arguments, given=None):
    return subprocess.run(["openssl", *arguments], input=given, check=True, capture_output=True).stdout


class Key:
    def __init__(self, kind, directory):
        self.path = f"{directory}/{kind}-{id(self)}.pem"
        with open(self.path, "wb") as file:
            file.write(openssl("genpkey", "-algorithm", "ed25519"))
        private = openssl("pkey", "-in", self.path, "-outform", "DER")[-32:]
        public = openssl("pkey", "-in", self.path, "-pubout", "-outform", "DER")[-32:]
        prefix = PREFIX[kind]
        self.public = encode(bytes([prefix]) + public)
        self.seed = encode(bytes([SEED | prefix >> 5, (prefix & 31) << 3]) + private)

    def sign(self, data):
        with open(f"{self.path}.data", "wb") as file:
            file.write(data)
        return openssl("pkeyutl", "-sign", "-rawin", "-inkey", self.path, "-in", f"{self.path}.data")


def part(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def token(issuer, subject, claims):
    body = {"iat": 1700000000, "iss": issuer.public, "name": claims["type"], "sub": subject.public,
            "nats": dict(claims, version=2)}
    body["jti"] = base64.b32encode(hashlib.sha256(json.dumps(body).encode()).digest()).decode().rstrip("=")
    text = part(json.dumps({"typ": "JWT", "alg": "ed25519-nkey"}).encode()) + b"." + part(json.dumps(body).encode())
    return (text + b"." + part(issuer.sign(text))).decode()


def account_token(operator, account):
    limits = dict.fromkeys(("subs", "data", "payload", "imports", "exports", "conn", "leaf"), -1)
    return token(operator, account, {"type": "account", "limits": dict(limits, wildcards=True)})


def write_creds(path, account, directory):
    user = Key("user", directory)
    jwt = token(account, user, {"type": "user", "subs": -1, "data": -1, "payload": -1, "pub": {}, "sub": {}})
    with open(path, "w", encoding="ascii") as file:
        file.write(f"-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n"
                   f"-----BEGIN USER NKEY SEED-----\n{user.seed}\n------END USER NKEY SEED------\n")


def main(directory):
    operator, account, stranger = Key("operator", directory), Key("account", directory), Key("account", directory)
    with open(f"{directory}/operator.conf", "w", encoding="ascii") as file:
        file.write(f"operator: {token(operator, operator, {'type': 'operator'})}\nresolver: MEMORY\n"
                   f"resolver_preload: {{ {account.public}: {account_token(operator, account)} }}\n")
    write_creds(f"{directory}/user.creds", account, directory)
    write_creds(f"{directory}/stranger.creds", stranger, directory)


if __name__ == "__main__":
    main(sys.argv[1])
