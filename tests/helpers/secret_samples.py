"""Secrets of every kind, made up at run time: none of them stands whole in a file of the
project.
"""

import random
import string

LETTERS = string.ascii_letters + string.digits
TOKEN = LETTERS + "-_"
BASE64 = LETTERS + "+/"
CAPITALS = string.ascii_uppercase + "234567"


def samples(seed: int) -> dict:
    """Return {kind: [(text, the part of it that is secret), ...]}."""
    chance = random.Random(seed)

    def made(count: int, alphabet: str = LETTERS) -> str:
        return "".join(chance.choice(alphabet) for _ in range(count))

    def digits(count: int) -> str:
        return made(count, "123456789")

    def pem(name: str) -> str:
        body = "\n".join(made(64, BASE64) for _ in range(5))
        return (
            "-----BEGIN %sPRIVATE" % name
            + " KEY-----\n%s\n-----END %sPRIVATE" % (body, name)
            + " KEY-----"
        )

    whole = {
        "openai": [
            "sk" + "-" + made(20) + "T3Blbk" + "FJ" + made(20),
            "sk" + "-proj-" + made(120, TOKEN),
            "sk" + "-svcacct-" + made(60, TOKEN),
            "sk" + "-" + made(48),
        ],
        "anthropic": ["sk" + "-ant-api03-" + made(93, TOKEN) + "AA"],
        "aws-id": ["AK" + "IA" + made(16, CAPITALS), "AS" + "IA" + made(16, CAPITALS)],
        "github": [
            "gh" + "p_" + made(36),
            "github" + "_pat_" + made(22) + "_" + made(59),
            "gh" + "s_" + made(36),
            "gh" + "u_" + made(36),
            "gh" + "o_" + made(36),
            "gh" + "r_" + made(76),
        ],
        "gitlab": ["gl" + "pat-" + made(20, LETTERS), "gl" + "rt-" + made(20, LETTERS)],
        "slack": [
            "xo" + "xb-%s-%s-%s" % (digits(12), digits(13), made(24)),
            "xo"
            + "xp-%s-%s-%s-%s" % (digits(12), digits(12), digits(12), made(32, "0123456789abcdef")),
        ],
        "slack-webhook": [
            "hooks.slack.com"
            + "/services/T%s/B%s/%s" % (made(8, CAPITALS), made(10, CAPITALS), made(24))
        ],
        "stripe": ["sk" + "_live_" + made(24), "rk" + "_live_" + made(99)],
        "google": ["AI" + "za" + made(35, TOKEN)],
        "telegram": [digits(10) + ":A" + "A" + made(33, TOKEN)],
        "discord": [
            "M" + made(23) + "." + made(6, TOKEN) + "." + made(27, TOKEN),
            "N" + made(25) + "." + made(6, TOKEN) + "." + made(38, TOKEN),
        ],
        "sendgrid": ["S" + "G." + made(22, TOKEN) + "." + made(43, TOKEN)],
        "npm": ["np" + "m_" + made(36)],
        "pypi": ["py" + "pi-AgEIcHlwaS5vcmc" + made(80, TOKEN)],
        "huggingface": ["h" + "f_" + made(34)],
        "jwt": [
            "ey" + "J" + made(20, TOKEN) + ".ey" + "J" + made(40, TOKEN) + "." + made(43, TOKEN),
            "ew" + "o" + made(20) + ".ew" + "o" + made(40) + "." + made(43, TOKEN),
        ],
        "pem": [pem(name) for name in ("RSA ", "OPENSSH ", "EC ", "", "ENCRYPTED ")],
    }
    found = {kind: [(text, text) for text in texts] for kind, texts in whole.items()}
    made_up = (
        ("aw", "s_secret_access_key", made(39, BASE64) + "k"),
        ("Auth", "orization: ", digits(1) + "a" + digits(1) + "f" + made(36, "0123456789abcdef")),
    )
    whole_key = made(85, BASE64) + "Q=="
    for kind, pattern, secret in (
        ("aws-secret", "<Secret" + "AccessKey>%s</Secret" + "AccessKey>", made(39, BASE64) + "k"),
        ("aws-secret", "Secret access key: %s", made(39, BASE64) + "k"),
        ("aws-secret", "aws configure set " + made_up[0][0] + made_up[0][1] + " %s", made_up[0][2]),
        ("authorization", made_up[1][0] + made_up[1][1] + "Token %s", made_up[1][2]),
        (
            "authorization",
            "authorization: Bearer %s",
            made(10, string.ascii_lowercase) + "qjzkvwmxtrplnbyc",
        ),
        ("azure-storage", "accountKey: %s", whole_key),
        ("azure-storage", "AZURE_STORAGE_KEY=%s", whole_key),
        ("azure-storage", '"keyName": "key1", "value": "%s"', whole_key),
        ("azure-storage", "https://x.blob.core.windows.net/c?sv=2022&sig=%s", made(43) + "%3D"),
        ("password", "DB_PASS = '%s'", "k9Wm" + made(1) + "2xQz"),
        ("password", 'password = "%s"', "zeLxlfWFfq" + made(2, string.ascii_uppercase)),
        ("password", "<password>%s</password>", "Gh5t" + made(1, string.ascii_lowercase) + "9pQ2x"),
        ("password", "Id=sa;Password=%s;", "Gh5t" + made(2, "abcd") + "9pQ2x"),
        (
            "password",
            "//npm.example.com/:_auth" + "Token=%s",
            "872fa609-a5b1-489f-a7ae-e45d11a" + made(5, "0123456789abcdef"),
        ),
        ("aws-secret", "aws_secret_access_key = %s", made(40, BASE64)),
        ("aws-secret", 'AWS_SECRET_ACCESS_KEY="%s"', made(40, BASE64)),
        ("aws-secret", '"SecretAccessKey": "%s"', made(40, BASE64)),
        ("azure-storage", "AccountName=a;AccountKey=%s;EndpointSuffix=x", made(86, BASE64) + "=="),
        ("url-password", "postgres://bob:%s@db.example.com/x", made(12)),
        ("authorization", "Authorization: Bearer %s", made(40, TOKEN)),
        ("authorization", "authorization: basic %s", made(24) + "=="),
        ("password", 'password = "%s"', made(10) + "1!"),
        ("password", "'passwd': '%s'", made(10) + "9"),
        ("password", "api_key='%s'", made(32)),
        ("password", 'client_secret: "%s"', made(23) + "7"),
    ):
        found.setdefault(kind, []).append((pattern % secret, secret))
    return found
