"""A real mail server on a free port of this machine, which takes note of what it takes.

Its arguments are the name of a file with JSON, and of one that gets a line of JSON for each mail before that is
acknowledged. It prints its port. It ends when its standard input does.
"""

import asyncio
import email
import email.policy
import json
import os
import ssl
import sys
import threading

from aiosmtpd.smtp import SMTP, AuthResult

with open(sys.argv[1]) as file:
    options = json.load(file)
notes = open(sys.argv[2], "a")


class Notes:
    async def handle_RCPT(self, server, session, envelope, address, rcpt_options):
        refusal = options["refused_recipients"].get(address)
        if refusal:
            return refusal
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        if options["refused_text"]:
            return options["refused_text"]
        message = email.message_from_bytes(envelope.original_content, policy=email.policy.default)
        print(
            json.dumps(
                {
                    "hello": session.host_name,
                    "encrypted": session.ssl is not None or options["safety"] == "tls",
                    "login": getattr(session.auth_data, "login", b"").decode(),
                    "from": envelope.mail_from,
                    "to": envelope.rcpt_tos,
                    "parameters": envelope.mail_options,
                    "headers": [[name, str(value)] for name, value in message.items()],
                    "text": message.get_content().replace("\r\n", "\n"),
                    "longest_line": max(map(len, envelope.original_content.split(b"\r\n"))),
                }
            ),
            file=notes,
            flush=True,
        )
        return "250 Taken"


def authenticate(server, session, envelope, mechanism, data):
    known = [part.encode() for part in options["login"]]
    is_known = [data.login, data.password] == known
    return AuthResult(success=is_known, handled=False, auth_data=data)


async def main():
    context = None
    if options["safety"] != "none":
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(options["certificate"], options["key"])
    starttls = options["safety"] == "starttls"

    def protocol():
        return SMTP(
            Notes(),
            hostname="mail.test",
            enable_SMTPUTF8=options["foreign_addresses"],
            tls_context=context if starttls else None,
            require_starttls=starttls,
            auth_required=bool(options["login"]),
            auth_require_tls=starttls,
            auth_exclude_mechanism=options["excluded"],
            authenticator=authenticate,
            loop=asyncio.get_running_loop(),
        )

    server = await asyncio.get_running_loop().create_server(
        protocol, "127.0.0.1", 0, ssl=context if options["safety"] == "tls" else None
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def end_with_the_test():
    sys.stdin.read()
    os._exit(0)


threading.Thread(target=end_with_the_test, daemon=True).start()
asyncio.run(main())
