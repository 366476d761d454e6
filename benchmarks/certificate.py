"""``certificate.py FOLDER``: writes ``server.pem``, a key and a certificate for localhost, and
``ca.pem``, the authority that signed it, into FOLDER.
"""

import sys
from pathlib import Path

import trustme


def main(folder: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    issued = authority.issue_cert("localhost")
    issued.private_key_and_cert_chain_pem.write_to_path(str(folder / "server.pem"))


main(Path(sys.argv[1]))
