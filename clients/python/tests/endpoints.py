"""Which method of the client asks each endpoint, and which have none on purpose."""

ENDPOINTS = {
    "GET /api/v1/health": "health",
    "GET /api/v1/openapi.json": "openapi",
    "GET /api/v1/whoami": "whoami",
    "GET /api/v1/volumes": "volumes",
    "GET /api/v1/fields": "fields",
    "GET /api/v1/sessions": "sessions",
    "GET /api/v1/summary": "summary",
    "GET /api/v1/packets": "decoded_packets",
    "GET /api/v1/sql": "sql",
    "GET /api/v1/extract": "extract",
    "GET /api/v1/holds": "holds",
    "POST /api/v1/holds": "hold",
    "DELETE /api/v1/holds/{id}": "release",
    "GET /api/v1/answers/{id}": "answer",
    "GET /api/v1/answers/{id}/manifest": "manifest",
    "GET /metrics": "metrics",
}
"""The method for each endpoint."""

_BROWSERS = "begins or ends the session of a browser; programs have tokens"
_ACCOUNT = "a person changes the own account at the page"
_ADMIN = "administration, at the page or by `wirespool serve` and `wirespool audit`"

LEFT_OUT = {
    "GET /api/v1/login": _BROWSERS,
    "POST /api/v1/login": _BROWSERS,
    "POST /api/v1/logout": _BROWSERS,
    "POST /api/v1/login/provider": _BROWSERS,
    "POST /api/v1/login/provider/finish": _BROWSERS,
    "POST /api/v1/first": _ACCOUNT,
    "POST /api/v1/account/password": _ACCOUNT,
    "POST /api/v1/account/second-factor": _ACCOUNT,
    "DELETE /api/v1/account/second-factor": _ACCOUNT,
    "POST /api/v1/account/second-factor/confirm": _ACCOUNT,
    "POST /api/v1/account/keys": _ACCOUNT,
    "POST /api/v1/account/keys/confirm": _ACCOUNT,
    "DELETE /api/v1/account/keys/{id}": _ACCOUNT,
    "GET /api/v1/people": _ADMIN,
    "POST /api/v1/people": _ADMIN,
    "DELETE /api/v1/people/{id}": _ADMIN,
    "POST /api/v1/people/{id}/role": _ADMIN,
    "POST /api/v1/people/{id}/password": _ADMIN,
    "POST /api/v1/people/{id}/disable": _ADMIN,
    "POST /api/v1/people/{id}/enable": _ADMIN,
    "DELETE /api/v1/people/{id}/second-factor": _ADMIN,
    "GET /api/v1/tokens": _ADMIN,
    "POST /api/v1/tokens": _ADMIN,
    "DELETE /api/v1/tokens/{id}": _ADMIN,
    "GET /api/v1/settings": _ADMIN,
    "GET /api/v1/audit": _ADMIN,
    "GET /api/v1/audit/check": _ADMIN,
}
"""Endpoints without a method, and why."""
