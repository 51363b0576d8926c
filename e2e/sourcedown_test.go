package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/stack"
)

// gate forwards what comes to its address to another one, until it is shut.
type gate struct {
	host     string
	listener net.Listener

	mu     sync.Mutex
	isShut bool
	open   []net.Conn
}

func newGate(t *testing.T, to string) *gate {
	t.Helper()

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)

	g := &gate{host: listener.Addr().String(), listener: listener}
	t.Cleanup(g.shut)

	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}

			there, err := net.Dial("tcp", to)
			if err != nil || !g.keep(from, there) {
				_ = from.Close()

				continue
			}

			for _, pair := range [][2]net.Conn{{from, there}, {there, from}} {
				go func() {
					_, _ = io.Copy(pair[0], pair[1])
					_ = pair[0].Close()
				}()
			}
		}
	}()

	return g
}

func (g *gate) keep(connections ...net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()

	g.open = append(g.open, connections...)

	return !g.isShut
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()

	g.isShut = true
	_ = g.listener.Close()

	for _, one := range g.open {
		_ = one.Close()
	}
}

// TestSourceDown checks that the service reports a system that is down in the same way for every kind of connection.
func TestSourceDown(t *testing.T) {
	t.Parallel()

	there, database, web, tables := newBucket(t), newOther(t), newAddresses(t, "http/1.1"), newTableCatalog(t)
	store := strings.TrimPrefix(there.endpoint, "http://")
	gates := map[string]*gate{
		"s3": newGate(t, store), "postgresql": newGate(t, net.JoinHostPort(database.host, strconv.Itoa(database.port))), "https": newGate(t, web.host), "iceberg": newGate(t, tables.host),
	}

	hosts := []string{store}
	for _, g := range gates {
		hosts = append(hosts, g.host)
	}

	s := start(t, "QUERN_SOURCE_HOSTS="+strings.Join(hosts, ","), "QUERN_SOURCE_TIMEOUT=2s")
	bearer := s.newKey().token("ada")

	database.run("CREATE TABLE orders (id bigint PRIMARY KEY)", "GRANT SELECT ON orders TO "+database.name)
	tables.do("create", map[string]any{"table": "d.orders", "columns": numberedColumns})

	host, text, err := net.SplitHostPort(gates["postgresql"].host)
	require.NoError(t, err)

	port, err := strconv.Atoi(text)
	require.NoError(t, err)

	address, err := json.Marshal(map[string]any{"baseUrl": "https://" + gates["https"].host + "/data/", "caCertificate": web.ca})
	require.NoError(t, err)

	settings := map[string]string{
		"s3": strings.Replace(there.s3Settings(), store, gates["s3"].host, 1), "postgresql": database.settings(map[string]any{"host": host, "port": port}), "https": string(address),
		"iceberg": tables.settings(map[string]any{"uri": "https://" + gates["iceberg"].host}),
	}
	wanted := map[string]string{
		"s3": `"prefix": "in/"`, "postgresql": `"postgresql": {"table": "orders", "mode": "full"}`, "https": `"paths": ["a.csv"]`, "iceberg": `"iceberg": {"namespace": "d", "table": "orders"}`,
	}
	connect := func(kind string) *answer {
		return call(t, http.MethodPost, s.url+"/connections", bearer, fmt.Sprintf(`{"name": "c-%s", "kind": %q, %q: %s}`, uuid.NewString(), kind, kind, settings[kind]))
	}
	create := func(kind, connection string) *answer {
		return call(t, http.MethodPost, s.url+"/sources", bearer, fmt.Sprintf(`{"name": "s-%s", "connectionId": %q, "namespace": "n", "datasetName": %q, %s}`, uuid.NewString(), connection, kind, wanted[kind]))
	}
	refused := func(kind string, answer *answer) {
		t.Helper()
		requireFault(t, kind, answer, http.StatusUnprocessableEntity, "VALIDATION_FAILED")
		require.Contains(t, answer.body, fmt.Sprintf(`{"code":%q,"message":"The host cannot be reached.`, kind))
	}

	made := map[string]connected{}

	for kind := range gates {
		var one connected

		answer := connect(kind)
		require.Equal(t, http.StatusCreated, answer.status, answer.body)
		answer.json(t, &one)

		made[kind] = one
	}

	for kind, g := range gates {
		g.shut()
		refused(kind, connect(kind))
	}

	// The service reaches databases and catalogs before it creates a source, and the others in a run.
	refused("postgresql", create("postgresql", made["postgresql"].ID))
	refused("iceberg", create("iceberg", made["iceberg"].ID))

	var failing sourced

	for _, kind := range []string{"https", "s3"} {
		answer := create(kind, made[kind].ID)
		require.Equal(t, http.StatusCreated, answer.status, answer.body)
		answer.json(t, &failing)
	}

	// The owner hears of the first run that fails.
	heard := watchEvents(t, bearer, "?types=source.failed", s)
	o := &sourceOf{filled: &filled{t, s, bearer, "ada", "n", "s3"}, id: failing.ID, there: there, model: map[int64]int{}}

	for range 2 {
		require.Equal(t, "failed", o.refresh().Status)
	}

	require.Equal(t, failing.ID, heard.awaits(1).Data.SourceID)
	require.Len(t, heard.events(), 1)

	for kind, one := range made {
		var tested connected

		call(t, http.MethodPost, s.url+"/connections/"+one.ID+"/test", bearer, "").json(t, &tested)
		require.Equal(t, "connect", tested.Problem.Code, kind)
	}

	// The service cannot list files without the store.
	requireFault(t, "files", call(t, http.MethodGet, s.url+"/connections/"+made["s3"].ID+"/files", bearer, ""), http.StatusBadGateway, "UPSTREAM_UNAVAILABLE")

	for _, hidden := range []string{database.password, stack.Env(t, "QUERN_TEST_S3_SECRET_KEY"), tables.token} {
		require.NotContains(t, s.log(), hidden)
	}
}
