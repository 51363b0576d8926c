package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// ask runs a statement in the dataset's namespace.
func (d *filled) ask(statement, more string, headers ...string) *answer {
	d.t.Helper()

	if more != "" {
		more = ", " + more
	}

	return call(d.t, http.MethodPost, d.s.url+"/query", d.bearer, fmt.Sprintf(`{"username": %q, "namespace": %q, "query": %q%s}`, d.owner, d.namespace, statement, more), headers...)
}

func TestSmoke(t *testing.T) {
	s := start(t)
	key := s.newKey()
	name, bearer := "smoker", key.token("smoker")
	d := newFilled(t, s, name, bearer)
	d.loaded("", "id,region,total,day,note\n1,north,19.90,2026-01-02,a\n2,south,5.00,2026-02-03,\n3,north,7.25,2026-03-04,c\n")
	for _, q := range []string{
		"SELECT * FROM orders", "select region, count(*) n, sum(total) s from orders group by 1 order by 1", "select o.id, o.day from orders o where total > 6 order by id desc limit 1",
		"selec 1", "select regoin from orders", "select * from order", "select * from orders; select 1", "drop table orders", "describe orders", "summarize orders", "select * from (describe orders)", "from orders", "table orders", "values (1, 'a')",
		"select 9007199254740993 as big, 'nan'::double n, 1.5::decimal(10,2) d, [1,2] l, {'a': 1} s, map{'k': 1.5} m, now()::timestamptz is not null z, timestamp '2026-01-01 10:00:00' ts, timestamptz '2026-01-01 10:00:00+02' tz, interval 3 day i, 'x'::blob b, null nn, 1 a, 2 a",
		"select read_text('/etc/passwd')", "select * from read_csv('/etc/passwd')", "select * from '/etc/passwd'", "select 'a'::int from orders", "with t as (select * from orders) select count(*) from t", "select current_setting('threads')", "select id from orders limit 2", "select \"nope/orders\".* from \"nope/orders\"", "select * from information_schema.tables", "pivot orders on region using sum(total)", "select $1", "",
	} {
		a := d.ask(q, "")
		t.Log(q, "→", a.status, a.body)
	}
	t.Log(d.ask("select count(*) from orders", `"explain": true`).body)
	for _, accept := range []string{"text/csv", "application/vnd.apache.parquet", "application/vnd.apache.arrow.stream", "image/png"} {
		a := d.ask("select * from orders", "", "Accept", accept)
		t.Log(accept, a.status, len(a.body), a.header)
	}
	t.Log(d.call("GET", "/rows?limit=2&columns=id,note", "").body)
	t.Log(d.call("GET", "/export?format=csv", "").body)
	t.Log(d.call("GET", "/export?format=ndjson", "").body)
	require.True(t, true)
}
