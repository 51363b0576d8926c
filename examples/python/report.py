"""Writes a short report and sends it only if every figure in it is in the data.

    python report.py NAMESPACE

QUERN_SERVER and QUERN_TOKEN name the server and an API token. The dataset orders has the columns region and total.
"""

import sys

import quern


def main(namespace: str) -> int:
    with quern.connect() as q:
        shop = q.namespace(namespace)
        statement = "SELECT region, sum(total) AS total FROM orders GROUP BY region ORDER BY total DESC"
        rows = shop.sql(statement).rows()

        lines = [f"Orders by region, {len(rows)} regions:"]
        lines += [f"- {row['region']}: {row['total']:,.2f}" for row in rows]
        report = "\n".join(lines)

        # Somebody may edit the text later, or a model may write it. The check compares what it says with the rows.
        me = q.me()["username"]
        checked = q.check(report, statements=[{"username": me, "namespace": namespace, "query": statement}])
        if checked.unverified:
            for claim in checked.claims:
                if not claim.verified:
                    print(f"not in the data: {claim.text} ({claim.reason})", file=sys.stderr)
            return 1
        print(report)
        return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
