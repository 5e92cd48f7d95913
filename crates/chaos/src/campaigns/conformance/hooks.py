"""Gives Schemathesis real ids and values, and counts what was answered.

The variable `LAUNCHWAY_REAL` names a file of JSON with what there is, `LAUNCHWAY_ANSWERS` the file that
the counts are written to.
"""

import atexit
import collections
import collections.abc
import json
import os
import random

import jsonschema_rs
import schemathesis
from schemathesis.core.parameters import ParameterLocation as Location

with open(os.environ["LAUNCHWAY_REAL"]) as file:
    real = json.load(file)

chance = random.Random(int(os.environ.get("LAUNCHWAY_SEED", "1")))
answers = collections.defaultdict(collections.Counter)
numbers = iter(range(1_000_000))


def one_of(kind):
    return chance.choice(real[kind])


def used_up(kind, otherwise):
    """One that the request will end; then one that is gone already."""
    return real[kind].pop() if real[kind] else one_of(otherwise)


# What a name stands for, whatever the operation. Paths below are looked at first.
NAMES = {
    "X-Organization-Id": lambda: real["organizations"][0],
    "application_id": lambda: one_of("applications"),
    "deployment_id": lambda: one_of("deployments"),
    "extension_id": lambda: one_of("extensions"),
    "execution_id": lambda: one_of("executions"),
    "delivery_id": lambda: one_of("deliveries"),
    "user_id": lambda: one_of("members"),
    "id": lambda: one_of("applications"),
    "after": lambda: one_of("lines"),
    "type": lambda: chance.choice(["slack", "discord", "generic"]),
    "status": lambda: chance.choice(["running", "failed", "queued"]),
    "level": lambda: chance.choice(["info", "build", "error"]),
    "action": lambda: chance.choice(["create", "update", "delete", "access"]),
    "resource_type": lambda: chance.choice(["user", "application", "token"]),
    "category": lambda: chance.choice(["Database", "Utility"]),
    "embed": lambda: "none",
    "page": lambda: chance.randint(1, 3),
    "page_size": lambda: chance.choice([1, 10, 1000]),
    "after_seq": lambda: chance.randint(0, 3),
    "from": lambda: "2020-01-01T00:00:00Z",
    "to": lambda: "2040-01-01T00:00:00+02:00",
    "start_time": lambda: "2020-01-01T00:00:00Z",
    "end_time": lambda: "2040-01-01T00:00:00Z",
    "role": lambda: chance.choice(["viewer", "member"]),
    "email": lambda: f"made-{next(numbers)}@example.com",
    "username": lambda: f"made-{next(numbers)}",
    "name": lambda: f"made-{next(numbers)}",
    "organization": lambda: "Another team",
    "description": lambda: "A description",
    "password": lambda: "a password of their own",
    "permissions": lambda: ["deploy:read", "audit:read"],
    "expires_at": lambda: "2040-01-01T00:00:00Z",
    "repository": lambda: real["repository"],
    "branch": lambda: "main",
    "port": lambda: chance.randint(1, 65535),
    "environment": lambda: chance.choice(["production", "staging"]),
    "build_pack": lambda: "static",
    "base_path": lambda: "/",
    "dockerfile_path": lambda: "Dockerfile",
    "health_check_path": lambda: "/",
    "proxy_server": lambda: "launchway",
    "labels": lambda: ["a"],
    "build_variables": lambda: {"A": "b"},
    "environment_variables": lambda: {"A": "b"},
    "domain": lambda: f"made-{next(numbers)}.example.com",
    "webhook_url": lambda: real["receiver"],
    "host": lambda: "smtp.example.com",
    "from_email": lambda: "launchway@example.com",
    "security": lambda: "starttls",
    "theme": lambda: "dark",
    "language": lambda: "pt-BR",
    "font_family": lambda: "outfit",
    "font_size": lambda: 16,
    "pre_run_command": lambda: "true",
    "post_run_command": lambda: "true",
    "yaml_content": lambda: None,
    "variables": lambda: {},
    "totp_code": lambda: None,
}

# What an operation wants that a name alone does not say. What it ends must not be anybody else's.
OPERATIONS = {
    ("DELETE", "/api/v1/deploy/application"): {"id": lambda: used_up("doomed_applications", "applications_gone")},
    ("DELETE", "/api/v1/auth/tokens/{id}"): {"id": lambda: used_up("doomed_tokens", "tokens_gone")},
    ("DELETE", "/api/v1/extensions/{extension_id}"): {
        "extension_id": lambda: used_up("doomed_extensions", "extensions")
    },
    ("DELETE", "/api/v1/organizations"): {"id": lambda: used_up("doomed_organizations", "organizations_gone")},
    ("DELETE", "/api/v1/organizations/users"): {"user_id": lambda: used_up("doomed_members", "members_gone")},
    ("PATCH", "/api/v1/organizations/users"): {"user_id": lambda: one_of("members")},
    ("GET", "/api/v1/organizations"): {"id": lambda: one_of("organizations")},
    ("GET", "/api/v1/organizations/usage"): {"id": lambda: one_of("organizations")},
    ("GET", "/api/v1/organizations/users"): {"id": lambda: one_of("organizations")},
    ("POST", "/api/v1/deploy/application/rollback"): {"id": lambda: one_of("deployments")},
    ("POST", "/api/v1/deploy/application/cancel-deployment"): {"id": lambda: one_of("deployments")},
    ("GET", "/api/v1/deploy/application/deployments/{deployment_id}/logs/stream"): {
        "deployment_id": lambda: one_of("ended")
    },
    ("POST", "/api/v1/auth/login"): {
        "email": lambda: real["email"],
        "password": lambda: real["password"],
    },
    ("POST", "/api/v1/notification/deliveries/{delivery_id}/replay"): {
        "delivery_id": lambda: used_up("doomed_deliveries", "deliveries")
    },
    ("POST", "/api/v1/notification/test"): {"type": lambda: chance.choice(["slack", "generic", "smtp"])},
    ("GET", "/api/v1/notification/deliveries"): {
        "type": lambda: chance.choice(["slack", "discord", "generic", "smtp"]),
        "status": lambda: chance.choice(["pending", "delivered", "dead"]),
    },
    ("GET", "/api/v1/extensions"): {"type": lambda: "run"},
    ("GET", "/api/v1/proxy/ask"): {"domain": lambda: real["domain"]},
    ("POST", "/api/v1/notification/smtp"): {"to": lambda: ["ops@example.com"]},
    ("PUT", "/api/v1/notification/smtp"): {"to": lambda: ["ops@example.com"]},
}
# These have a body that may be absent, and an id of their own kind: the only one there is will do.
WITHOUT_ID = {"/api/v1/notification/smtp", "/api/v1/api/v1/notification/smtp"}


# What follows rules that no schema can express.
ALWAYS = {
    "repository",
    "build_pack",
    "webhook_url",
    "password",
    "yaml_content",
    "domain",
    "host",
    "build_variables",
    "environment_variables",
    "variables",
}

# The messages of rules that no schema expresses: between fields, about what there is, and about the machine.
RULES = [
    "must be absent for build pack",
    "must be 1 for build pack",
    "either id, or name with an optional environment",
    "The archive ",
    "branch is required",
    "font_family or font_size is required",
    "there is nothing to change",
    "must be the id of a line of this application's log",
    "must be harder to guess",
    "is not everyone's to reach",
    "go together",
    "is needed again when",
    "must be among your own",
    "variables.",
    "must be in the future",
]

# What an operation can do without by the document, and not by its rules.
ALSO = {("POST", "/api/v1/deploy/application"): ["branch"]}


def fill(case, location, values, careful):
    """Puts something real in the place of every value whose name is known, or of most of them.

    Values that are meant to be wrong stay.
    """
    if not isinstance(values, collections.abc.MutableMapping) or is_wrong(case, location):
        return
    own = OPERATIONS.get((case.method, case.path), {})
    if careful and location == Location.BODY:
        for name in ALSO.get((case.method, case.path), []):
            values.setdefault(name, None)
    for name in list(values):
        if name == "id" and case.path in WITHOUT_ID:
            del values[name]
            continue
        make = own.get(name) or NAMES.get(name)
        # An id that Schemathesis took from an answer may be the caller's own: their role stays as it is.
        is_fixed = name in ALWAYS or name in own
        if make is not None and (careful or is_fixed or chance.random() < 0.7):
            value = make()
            if value is None:
                del values[name]
            else:
                values[name] = value


def is_wrong(case, location):
    return case.meta is not None and case.meta.is_negative_at(location)


@schemathesis.auth()
class Session:
    """The token of every request. What ends a session has sessions of its own."""

    def get(self, case, context):
        return real["session"]

    def set(self, case, token, context):
        if case.path == "/api/v1/auth/logout":
            token = real["doomed_sessions"].pop() if real["doomed_sessions"] else "lws_gone"
        case.headers["Authorization"] = f"Bearer {token}"


@schemathesis.hook
def before_call(context, case, kwargs):
    # A stream of what is still live does not end.
    careful = case.path.endswith("/logs/stream") or chance.random() < 0.5
    for location, values in [
        (Location.PATH, case.path_parameters),
        (Location.QUERY, case.query),
        (Location.HEADER, case.headers),
        (Location.BODY, case.body),
    ]:
        fill(case, location, values, careful)


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Drops two kinds of failures: by rules that no schema expresses, and by what `docs/api.md` allows."""
    if type(failure).__name__ == "RejectedPositiveData":
        # Schemathesis takes an empty header for an absent one; the server refuses an id that is empty.
        if "" in case.headers.values():
            return False
        message = response.json()["message"]
        return not any(rule in message for rule in RULES)
    if type(failure).__name__ == "AcceptedNegativeData":
        return not is_lenient(case)
    return True


def is_lenient(case):
    """Whether only the body is wrong, and right once its empty texts are absent and the others are trimmed."""
    document, operation = case.operation.schema.raw_schema, case.operation.definition.raw
    # Unknown parameters of a query are ignored.
    known = {parameter["name"] for parameter in operation.get("parameters", [])}
    is_query_wrong = is_wrong(case, Location.QUERY) and known & set(case.query)
    if not isinstance(case.body, dict) or is_query_wrong:
        return False
    if is_wrong(case, Location.PATH) or is_wrong(case, Location.HEADER):
        return False
    content = operation["requestBody"]["content"]["application/json"]
    schema = {**content["schema"], "components": document["components"]}
    tidy = {name: trimmed(value) for name, value in case.body.items() if value != ""}
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=True).is_valid(tidy)


def trimmed(value):
    if isinstance(value, list):
        return [trimmed(item) for item in value]
    return value.strip() if isinstance(value, str) else value


@schemathesis.hook
def after_call(context, case, response):
    answers[f"{case.method} {case.path}"][response.status_code] += 1


@atexit.register
def write():
    with open(os.environ["LAUNCHWAY_ANSWERS"], "w") as file:
        json.dump(answers, file)
