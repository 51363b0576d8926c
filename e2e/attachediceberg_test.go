package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/stack"
)

// TestAttachedIceberg attaches tables that PyIceberg writes, and compares the datasets with what PyIceberg reads.
func TestAttachedIceberg(t *testing.T) {
	t.Parallel()

	c := newTableCatalog(t)
	hosts := []string{c.hosts()}

	var liars []*tableCatalog

	for range catalogLies() {
		liar := c.mirror()
		liars, hosts = append(liars, liar), append(hosts, liar.host)
	}

	s := start(t, strings.Join(hosts, ","), "QUERN_SOURCE_TIMEOUT=3s", "QUERN_MAINTENANCE_INTERVAL=1s", "QUERN_LOG_LEVEL=debug")
	key := s.newKey()

	for name, test := range map[string]func(t *testing.T, s *service, c *tableCatalog, key *signer){
		"a table that changes": attachedFollows, "types and bounds": attachedTypes, "only read": attachedReadOnly, "revoked": attachedRevoked, "profiled": attachedProfiled, "what is refused": attachedRefused, "spoiled": attachedSpoiled,
		"command line": attachedCommands,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, s, c.with(t), key)
		})
	}

	t.Run("a catalog that is down, slow or lies", func(t *testing.T) {
		t.Parallel()
		attachedLies(t, s, liars, key)
	})

	t.Cleanup(func() { // after all of them
		for _, hidden := range []string{c.token, c.secret, stack.Env(t, "QUERN_TEST_S3_SECRET_KEY")} {
			require.NotContains(t, s.log(), hidden)
		}

		var copied []string

		for key := range s.place.objects() {
			if strings.HasPrefix(key, "lake/data/") {
				copied = append(copied, key)
			}
		}

		require.LessOrEqual(t, len(copied), 2, "no row is copied: two datasets have rows of their own")
	})
}

// numberedRows returns rows with the given ids.
func numberedRows(from, count int) (rows []map[string]any) {
	for n := from; n < from+count; n++ {
		rows = append(rows, map[string]any{"id": n, "name": fmt.Sprintf("n%d", n), "amount": fmt.Sprintf("%d.250", n%100), "at": "2026-11-15T10:00:00"})
	}

	return rows
}

var numberedColumns = [][]string{{"id", "long"}, {"name", "string"}, {"amount", "decimal"}, {"at", "timestamp"}} //nolint:gochecknoglobals // read only

// change lets PyIceberg change a table at random. next is the lowest id that no row has.
func (a *attached) change(random *rand.Rand, next *int) {
	a.t.Helper()

	some := 1 + random.IntN(max(1, *next))

	switch random.IntN(7) {
	case 0:
		a.catalog.do("delete", map[string]any{"table": a.table, "where": fmt.Sprintf("id >= %d and id < %d", some, some+5)})
	case 1:
		a.catalog.do("overwrite", map[string]any{"table": a.table, "rows": numberedRows(some, 2), "where": fmt.Sprintf("id >= %d and id < %d", some, some+2)})
	case 2:
		a.catalog.do("compact", map[string]any{"table": a.table})
	default:
		count := 1 + random.IntN(20)
		a.catalog.do("append", map[string]any{"table": a.table, "rows": numberedRows(*next, count)})
		*next += count
	}
}

func attachedFollows(t *testing.T, s *service, c *tableCatalog, key *signer) {
	t.Helper()

	table, bearer := "sales.eu.orders", key.token("ada")
	c.do("create", map[string]any{"table": table, "columns": numberedColumns})

	// The catalog gives the client a token.
	a := attach(t, s, c, "ada", bearer, s.connectCatalog(t, bearer, c, map[string]any{"token": nil, "clientId": c.client, "clientSecret": c.secret}), table)
	a.requireSame(a.refresh()) // no snapshot yet
	require.Equal(t, "0", a.pinned())

	c.do("append", map[string]any{"table": table, "rows": numberedRows(1, 30)})
	a.requireSame(a.refresh())

	// Rows tell the table, the snapshot that added them, and the file.
	marked, _ := a.rowsOf("SELECT id FROM shown ORDER BY id LIMIT 1")[0]["__metadata"].(map[string]any)
	from, _ := marked["source"].(map[string]any)
	require.Equal(t, fmt.Sprintf("sales.eu.orders@%s/%s", a.pinned(), base(c.read(table).Files[0])), from["file"])
	require.EqualValues(t, 1, from["row"])

	// Nothing has changed: no snapshot is made.
	before := len(a.filled.snapshots())
	a.requireSame(a.refresh())
	require.Len(t, a.filled.snapshots(), before)
	require.Equal(t, "attach", a.filled.snapshots()[0].Operation)

	earlier := a.committed()[0]
	then := a.texts(c.read(table).Columns)

	random, next := rand.New(rand.NewPCG(5, 6)), 31

	for range loops(50) {
		for range 1 + random.IntN(3) {
			a.change(random, &next)
		}

		before := len(a.filled.snapshots())
		a.requireSame(a.refresh())
		require.LessOrEqual(t, len(a.filled.snapshots()), before+1, "one snapshot for each refresh")
	}

	// Columns follow the table. Files that were written before keep their ids.
	for _, evolved := range []map[string]any{
		{"add": map[string]string{"note": "string", "small": "int", "half": "float"}},
		{"rename": map[string]string{"name": "label"}},
		{"promote": map[string]string{"small": "long", "half": "double", "amount": "wide decimal"}},
		{"drop": []string{"at"}},
		{"add": map[string]string{"name": "long"}},
	} {
		evolved["table"] = table
		c.do("evolve", evolved)
		a.requireSame(a.refresh())

		rows := []map[string]any{{"id": next, "note": "new", "small": 7, "half": 0.5, "amount": "1.125"}}
		if slices.Contains(c.read(table).Columns, "note") {
			c.do("append", map[string]any{"table": table, "rows": rows})
		}

		next++
		a.requireSame(a.refresh())
	}

	// An earlier snapshot has the rows and the columns of then.
	answer := call(t, http.MethodPost, s.url+"/query", bearer, fmt.Sprintf(`{"namespace": %q, "query": "SELECT count(*) AS n, count(\"at\") AS ats FROM shown", "asOf": %q}`, a.namespace, earlier))
	require.Equal(t, http.StatusOK, answer.status, answer.body)
	require.Contains(t, answer.body, fmt.Sprintf(`"n":%d,"ats":%d`, len(then), len(then)))

	// A table of the same name with other rows is another table.
	c.do("drop", map[string]any{"table": table})
	c.do("create", map[string]any{"table": table, "columns": numberedColumns})

	run := a.refresh()
	require.Equal(t, "stopped", run.Status)
	require.Contains(t, run.Reason, "shows another table")
}

func base(address string) string { return address[strings.LastIndex(address, "/")+1:] }

func attachedTypes(t *testing.T, s *service, c *tableCatalog, key *signer) {
	t.Helper()

	kinds := []string{"int", "long", "float", "double", "decimal", "boolean", "date", "time", "timestamp", "timestamptz", "string", "uuid"}
	table, bearer := "t.types", key.token("types")

	var columns [][]string
	for _, kind := range kinds {
		columns = append(columns, []string{"c_" + kind, kind})
	}

	id := uuid.NewString()
	c.do("create", map[string]any{"table": table, "columns": columns, "partition": []string{"c_int"}, "version": 1})

	for n := range 6 {
		c.do("append", map[string]any{"table": table, "rows": []map[string]any{{
			"c_int": n - 3, "c_long": int64(n) << 40, "c_float": 0.5, "c_double": 0.25, "c_decimal": "-12.500", "c_boolean": true, "c_date": "2026-11-1" + strconv.Itoa(n), "c_time": "10:11:12", "c_timestamp": "2026-11-15T10:00:00",
			"c_timestamptz": "2026-11-15T12:00:00+02:00", "c_string": fmt.Sprintf("k%d ä", n), "c_uuid": id,
		}, {}}})
	}

	a := attach(t, s, c, "types", bearer, s.connectCatalog(t, bearer, c, nil), table)
	require.Equal(t, "completed", a.refresh().Status)

	row := a.rowsOf("FROM shown WHERE c_int = 2")[0]
	delete(row, "__metadata")
	require.Equal(t, map[string]any{
		"c_int": 2.0, "c_long": float64(int64(5) << 40), "c_float": 0.5, "c_double": 0.25, "c_decimal": -12.5, "c_boolean": true, "c_date": "2026-11-15", "c_time": "10:11:12", "c_timestamp": "2026-11-15T10:00:00",
		"c_timestamptz": "2026-11-15T10:00:00", "c_string": "k5 ä", "c_uuid": id,
	}, row)
	require.EqualValues(t, 6, a.rowsOf("SELECT count(*) AS n FROM shown WHERE c_int IS NULL")[0]["n"])

	// Files without a row that a filter selects are not read: all but one are gone.
	fresh := attach(t, s, c, "types", bearer, s.connectCatalog(t, bearer, c, nil), table)
	require.Equal(t, "completed", fresh.refresh().Status)

	for _, file := range c.read(table).Files {
		if !strings.Contains(file, "c_int=-2") {
			_, err := c.there.client.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &c.there.bucket, Key: new(strings.TrimPrefix(file, "s3://"+c.there.bucket+"/"))})
			require.NoError(t, err)
		}
	}

	for _, filter := range []string{"c_int = -2", "c_int < -1 AND c_int > -3", "c_long = 1099511627776", "c_date = DATE '2026-11-11'", "c_string = 'k1 ä'"} {
		require.EqualValues(t, 1, fresh.rowsOf("SELECT count(*) AS n FROM shown WHERE " + filter)[0]["n"], filter)
	}

	// The others cannot be had any more, and the reader is told what to do.
	answer := fresh.statement("FROM shown")
	require.Equal(t, http.StatusUnprocessableEntity, answer.status, answer.body)
	require.Contains(t, answer.body, "is no longer in its store")
	require.Contains(t, answer.body, "Run the source of the dataset again")
	require.NotContains(t, answer.body, "s3://")
}

func attachedReadOnly(t *testing.T, s *service, c *tableCatalog, key *signer) {
	t.Helper()

	table, bearer := "r.orders", key.token("reader")
	c.do("create", map[string]any{"table": table, "columns": numberedColumns})
	c.do("append", map[string]any{"table": table, "rows": numberedRows(1, 10)})

	connection := s.connectCatalog(t, bearer, c, nil)
	a := attach(t, s, c, "reader", bearer, connection, table)
	a.requireSame(a.refresh())

	for range 6 { // small files are not joined
		c.do("append", map[string]any{"table": table, "rows": numberedRows(100, 1)})
	}

	a.requireSame(a.refresh())

	for _, one := range []struct{ method, address, body string }{
		{http.MethodPost, "/rows", `{"data": [{"id": 1}]}`},
		{http.MethodPost, "/rows?mode=merge&key=id", `{"data": [{"id": 1}]}`},
		{http.MethodPost, "/rows/delete", `{"condition": "id = 1"}`},
		{http.MethodPost, "/clear", ""},
		{http.MethodPost, "/snapshots/" + a.filled.snapshots()[1].SnapshotID + "/restore", ""},
		{http.MethodPost, "/ingestions", fmt.Sprintf(`{"sessionId": %q}`, uuid.NewString())},
		{http.MethodPut, "/key", `{"columns": ["id"]}`},
	} {
		answer := a.call(one.method, one.address, one.body)
		require.Equal(t, http.StatusConflict, answer.status, "%s: %s", one.address, answer.body)
		require.Contains(t, answer.body, "is attached")
	}

	call(t, http.MethodGet, s.url+"/user/usage", key.token("viewer"), "") // so that there is such a user

	_, err := s.command("dataset", "transfer", a.path(), "viewer")
	require.ErrorContains(t, err, "is attached")

	a.requireSame(a.refresh())

	for _, one := range a.filled.snapshots() {
		require.Equal(t, "attach", one.Operation)
	}

	// Attached bytes are not stored here.
	require.NotContains(t, call(t, http.MethodGet, s.url+"/user/usage", bearer, "").body, `"amount":-`)

	// A dataset with rows of its own is not attached.
	a.beside("own", `{"data": [{"id": 1}]}`)

	own := &filled{t, s, bearer, "reader", a.namespace, "own"}

	b := &attached{&sourceOf{filled: own}, c, table, connection}

	// That is told when the source is added, also if the rows were removed since, and by the first run if there are rows since.
	refused := b.create(connection, table)
	require.Equal(t, http.StatusConflict, refused.status, refused.body)
	require.Contains(t, refused.body, "rows of its own")
	require.Equal(t, http.StatusOK, own.call(http.MethodPost, "/clear", "").status)
	require.Equal(t, http.StatusConflict, b.create(connection, table).status)

	b.filled = &filled{t, s, bearer, "reader", a.namespace, "later"}

	var made sourced

	b.create(connection, table).json(t, &made)
	b.id = made.ID
	a.beside("later", `{"data": [{"id": 1}]}`)
	run := b.refresh()
	require.Equal(t, "stopped", run.Status)
	require.Equal(t, "dataset", b.get().ReasonCode)
	require.Contains(t, run.Reason, "rows of its own")

	// Others read it with a right on the dataset and without the connection. It can be joined, and exported.
	viewer := key.token("viewer")
	answer := call(t, http.MethodPost, s.url+"/permissions/datasets/"+a.path()+"/shares", bearer, `{"username": "viewer", "role": "viewer"}`)
	require.Equal(t, http.StatusOK, answer.status, answer.body)

	answer = call(t, http.MethodPost, s.url+"/query", viewer, fmt.Sprintf(`{"username": "reader", "namespace": %q, "query": "SELECT count(*) AS n FROM shown JOIN shown AS other USING (id) WHERE id < 5"}`, a.namespace))
	require.Equal(t, http.StatusOK, answer.status, answer.body)
	require.Contains(t, answer.body, `"n":4`)
	require.Equal(t, http.StatusNotFound, call(t, http.MethodGet, s.url+"/connections/"+connection, viewer, "").status)
}

func attachedRevoked(t *testing.T, s *service, c *tableCatalog, key *signer) {
	t.Helper()

	table, owner, bearer := "v.orders", key.token("lender"), key.token("borrower")
	c.do("create", map[string]any{"table": table, "columns": numberedColumns})
	c.do("append", map[string]any{"table": table, "rows": numberedRows(1, 10)})

	connection := s.connectCatalog(t, owner, c, nil)
	s.lend(t, owner, connection, "borrower")

	a := attach(t, s, c, "borrower", bearer, connection, table)
	a.requireSame(a.refresh())

	// The files are in the cache, but nobody reads them when the connection may no longer be used.
	s.takeBack(t, owner, connection, "borrower")

	answer := a.statement("FROM shown")
	require.Equal(t, http.StatusUnprocessableEntity, answer.status, answer.body)
	require.Contains(t, answer.body, "may no longer be read")

	run := a.refresh()
	require.Equal(t, "stopped", run.Status)
	require.Equal(t, "connection", a.get().ReasonCode)

	s.lend(t, owner, connection, "borrower")
	a.set(true)
	a.requireSame(a.refresh())

	// New credentials of the catalog are tried. A deleted connection opens nothing.
	require.Equal(t, http.StatusUnprocessableEntity, call(t, http.MethodPatch, s.url+"/connections/"+connection, owner, `{"token": "wrong"}`).status)
	require.Equal(t, http.StatusOK, call(t, http.MethodPatch, s.url+"/connections/"+connection, owner, fmt.Sprintf(`{"token": %q}`, c.token)).status)
	require.Equal(t, http.StatusUnprocessableEntity, call(t, http.MethodPatch, s.url+"/connections/"+connection, owner, `{"accessKeyId": "x", "secretAccessKey": "wrong"}`).status)
	a.requireSame(a.refresh())

	require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, s.url+"/connections/"+connection, owner, "").status)
	require.Equal(t, http.StatusUnprocessableEntity, a.statement("FROM shown").status)
}

func attachedRefused(t *testing.T, s *service, c *tableCatalog, key *signer) {
	t.Helper()

	bearer := key.token("refused")

	// Connections that do not work are not made.
	for reason, others := range map[string]map[string]any{
		"The catalog refused the credentials": {"token": "wrong"},
		"refused the credentials, or":         {"token": nil, "clientId": c.client, "clientSecret": "wrong"},
		"The TLS connection failed":           {"caCertificate": nil},
		"no such warehouse":                   {"warehouse": "other"},
		"does not allow this host":            {"uri": "https://elsewhere.example"},
		"must have either token":              {"clientId": "x"},
		"is not the name of a bucket":         {"store": map[string]any{"endpoint": c.there.endpoint, "region": "x", "bucket": "../x", "accessKeyId": "x", "secretAccessKey": "x"}},
		"must be certificates in PEM":         {"caCertificate": "x"},
	} {
		answer := call(t, http.MethodPost, s.url+"/connections", bearer, fmt.Sprintf(`{"name": "c-%s", "kind": "iceberg", "iceberg": %s}`, uuid.NewString(), c.settings(others)))
		require.Equal(t, http.StatusUnprocessableEntity, answer.status, answer.body)
		require.Contains(t, answer.body, reason)
	}

	connection := s.connectCatalog(t, bearer, c, nil)
	a := &attached{&sourceOf{filled: &filled{t, s, bearer, "refused", "n-" + uuid.NewString(), "shown"}}, c, "", connection}

	c.do("create", map[string]any{"table": "x.nested", "columns": [][]string{{"id", "long"}, {"tags", "list"}, {"raw", "binary"}}})
	c.do("create", map[string]any{"table": "x.mapped", "columns": numberedColumns, "properties": map[string]string{"schema.name-mapping.default": "[]"}})
	c.do("create", map[string]any{"table": "x.encrypted", "columns": numberedColumns, "properties": map[string]string{"encryption.key-id": "k"}})
	c.do("create", map[string]any{"table": "x.elsewhere", "columns": numberedColumns})
	c.do("append", map[string]any{"table": "x.elsewhere", "rows": numberedRows(1, 3)})

	for table, reason := range map[string]string{
		"x.nested": `\"tags\" (nested), \"raw\" (binary)`, "x.mapped": "has a name mapping", "x.encrypted": "is encrypted", "x.absent": "no such warehouse, namespace or table",
	} {
		answer := a.create(connection, table)
		require.Equal(t, http.StatusUnprocessableEntity, answer.status, answer.body)
		require.Contains(t, answer.body, reason)
	}

	// A connection whose store has another prefix does not have the files.
	narrow := s.connectCatalog(t, bearer, c, map[string]any{"store": map[string]any{
		"endpoint": c.there.endpoint, "region": stack.Env(t, "QUERN_TEST_S3_REGION"), "bucket": c.there.bucket, "prefix": c.there.prefix + "other", "pathStyle": true,
		"accessKeyId": stack.Env(t, "QUERN_TEST_S3_ACCESS_KEY"), "secretAccessKey": stack.Env(t, "QUERN_TEST_S3_SECRET_KEY"),
	}})
	answer := a.create(narrow, "x.elsewhere")
	require.Equal(t, http.StatusUnprocessableEntity, answer.status, answer.body)
	require.Contains(t, answer.body, "not in the bucket and under the prefix")

	// What does not fit the kind of the connection.
	body := fmt.Sprintf(`{"name": "s-%s", "connectionId": %q, "namespace": "n", "datasetName": "d", %%s}`, uuid.NewString(), connection)
	for _, more := range []string{`"prefix": "a"`, `"postgresql": {"table": "a", "mode": "full"}`, `"paths": ["a"]`, `"iceberg": {"namespace": "a", "table": "b"}, "changed": "replace"`} {
		require.Equal(t, http.StatusUnprocessableEntity, call(t, http.MethodPost, s.url+"/sources", bearer, fmt.Sprintf(body, more)).status, more)
	}
}
