package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/e2e/kill"
)

//nolint:gochecknoglobals // a flag of the tests
var recordInstallation = flag.String("installation", "", "record an installation of this version in the `folder` of testdata/installations")

// installations is the folder with what earlier versions stored.
const installations = "testdata/installations"

// addressToken is what the server of the recorded source asks for.
const addressToken = "the-token-of-an-installation-that-tests-upgrade"

// installation is the file installation.json of an installation that an earlier version made. The files database.sql.gz and
// store.tar.gz beside it are its database and its objects.
type installation struct {
	Prefix    string `json:"prefix"` // location in the store; the metadata of tables contains it
	Secret    string `json:"secret"` // of API tokens
	SourceKey string `json:"sourceKey"`
	Owner     string `json:"owner"` // API token of the user ada, who owns everything
	Reader    string `json:"reader"`
	Source    string `json:"source,omitempty"` // id of a source of addresses

	// Answers are the bodies that the earlier version returned to GET requests, by the path of the request.
	Answers map[string]json.RawMessage `json:"answers"`
}

// settings keep everything that an installation contains, regardless of its age.
func (i installation) settings() []string {
	return []string{
		"QUERN_S3_PREFIX=" + i.Prefix, "QUERN_SECRET=" + i.Secret, "QUERN_SOURCE_KEY=" + i.SourceKey,
		"QUERN_DELETE_GRACE=87600h", "QUERN_SNAPSHOT_RETENTION=87600h", "QUERN_STATEMENT_RETENTION=8760h",
	}
}

// TestUpgrade continues installations that earlier versions made: the migrations are killed and run again, every answer of the earlier
// version is still given, and the datasets accept new rows. To record an installation of this version:
//
//	go test -tags scripted ./e2e -run TestUpgrade -installation NAME
func TestUpgrade(t *testing.T) { //nolint:tparallel // the installations share a location
	t.Parallel()
	kill.Loop(t)

	if *recordInstallation != "" {
		record(t, filepath.Join(installations, *recordInstallation))
	}

	folders, err := os.ReadDir(installations)
	require.NoError(t, err)
	require.NotEmpty(t, folders)

	for _, folder := range folders {
		t.Run(folder.Name(), func(t *testing.T) { upgrade(t, filepath.Join(installations, folder.Name())) })
	}
}

// upgrade restores an installation, migrates it and uses it.
func upgrade(t *testing.T, folder string) {
	t.Helper()

	var old installation

	content, err := os.ReadFile(filepath.Join(folder, "installation.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(content, &old))

	there := locate(t, old.Prefix)
	there.clear()
	there.unpack(filepath.Join(folder, "store.tar.gz"))

	database := createDatabase(t)
	dumped := filepath.Join(t.TempDir(), "database.sql")
	require.NoError(t, os.WriteFile(dumped, unzipped(t, filepath.Join(folder, "database.sql.gz")), 0o600))
	undump(t, database, dumped)

	for wait := 20 * time.Millisecond; wait < time.Second; wait *= 2 {
		killedMigration(t, database, wait)
	}

	migrate(t, database)

	restored := &service{t: t, databaseURL: database, place: there}
	require.Contains(t, restored.quernd("store", "claim"), "epoch 2")

	web := newAddresses(t, "h2")
	s := start(t, append(old.settings(), "QUERN_DATABASE_URL="+database, web.hosts())...)

	for path, before := range old.Answers {
		answer := call(t, http.MethodGet, s.url+path, old.Owner, "")
		require.Equal(t, http.StatusOK, answer.status, "%s: %s", path, answer.body)
		requireKept(t, path, decoded(t, string(before)), decoded(t, answer.body))
	}

	// Grants, keys, restoring and new rows work as before.
	orders := &filled{t, s, old.Owner, "ada", "sales", "orders"}
	require.Equal(t, http.StatusOK, call(t, http.MethodGet, orders.url(), old.Reader, "").status)
	require.Equal(t, http.StatusNotFound, call(t, http.MethodGet, s.url+"/data/ada/sales/customers", old.Reader, "").status)

	rows := orders.describe().RowCount
	orders.stored(`{"data": [{"id": 900, "region": "east", "amount": 1.5}]}`)
	orders.loaded(`"mode": "append"`, "id,region,amount\n901,west,2.5\n")
	require.Equal(t, rows+2, orders.describe().RowCount)
	require.EqualValues(t, 1, orders.kept(`{"data": [{"id": 900, "region": "east", "amount": 1}, {"id": 902, "region": "east", "amount": 1}]}`).RowsSetAside)
	require.Equal(t, "answer", orders.asks("How many orders are there?", "").Result.Outcome)

	snapshots := orders.snapshots()
	require.Equal(t, http.StatusOK, orders.restoreTo(snapshots[len(snapshots)-1].SnapshotID).status)

	if old.Source != "" {
		old.continueSource(s, web)
	}

	require.Equal(t, "0 lost, 0 orphans\n", restored.quernd("fsck"))
}

// killedMigration starts the migration and kills it after some time.
func killedMigration(t *testing.T, database string, after time.Duration) {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), after)
	defer cancel()

	command := exec.CommandContext(ctx, binary(), "migrate", "--grant", servingRole)
	command.Env = []string{"QUERN_DATABASE_URL=" + database}
	command.Cancel = func() error { return kill.Process(t, command.Process) }

	kill.Round(t)

	if printed, err := command.CombinedOutput(); err != nil {
		require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded, string(printed))
	}
}

// requireKept checks that everything an earlier version answered is in the answer of this one. Objects may have more members.
func requireKept(t *testing.T, where string, before, now any) {
	t.Helper()

	switch before := before.(type) {
	case map[string]any:
		now, is := now.(map[string]any)
		require.True(t, is, where)

		for name, value := range before {
			require.Contains(t, now, name, where)
			requireKept(t, where+" "+name, value, now[name])
		}
	case []any:
		now, is := now.([]any)
		require.True(t, is, where)
		require.Len(t, now, len(before), where)

		for i, value := range before {
			requireKept(t, fmt.Sprint(where, " ", i), value, now[i])
		}
	default:
		require.Equal(t, before, now, where)
	}
}

// record creates an installation with every kind of object that outlives an upgrade, and writes it to a folder.
func record(t *testing.T, folder string) {
	t.Helper()

	made := installation{
		Prefix: "e2e/installation/", Secret: "a secret of an installation that tests upgrade",
		SourceKey: "a key of an installation that tests upgrade", Answers: map[string]json.RawMessage{},
	}
	locate(t, made.Prefix).clear()
	web := newAddresses(t, "h2")
	s := start(t, append(made.settings(), "QUERN_MAINTENANCE_INTERVAL=1h", web.hosts())...)
	key := s.newKey()
	bearer := key.token("ada")

	created := call(t, http.MethodPost, s.url+"/schema/ada/namespaces", bearer, `{"name": "sales"}`)
	require.Equal(t, http.StatusCreated, created.status, created.body)

	orders := (&filled{t, s, bearer, "ada", "sales", ""}).beside("orders", "")
	made.Owner = value(t, call(t, http.MethodPost, s.url+"/user/tokens", bearer, `{"name": "owner", "role": "owner"}`))
	made.Reader = value(t, call(t, http.MethodPost, s.url+"/user/tokens", key.token("ben"), `{"name": "reader"}`))

	// Rows of every way to write them, with a key and rows set aside.
	orders.loaded("", "id,region,amount\n1,north,10.5\n2,south,20\n3,north,30\n")
	orders.declared(`{"columns": ["id"], "duplicates": "setAside"}`)
	set := orders.loaded(`"mode": "append"`, "id,region,amount\n3,north,31\n4,west,40\n")
	orders.stored(`{"data": [{"id": 5, "region": "south", "amount": 50}]}`)
	require.Equal(t, http.StatusOK, orders.call(http.MethodPost, "/rows/delete", `{"condition": "id = 2"}`).status)

	customers := orders.beside("customers", `{"data": [{"name": "Ann", "since": "2024-02-29"}, {"name": "Jörg", "since": null}]}`)
	gone := orders.beside("gone", `{"data": [{"n": 1}]}`)
	require.Equal(t, http.StatusNoContent, gone.call(http.MethodDelete, "", "").status)
	orders.profiled()
	customers.profiled()

	// What people said about the data, and whom they let see it.
	for path, body := range map[string]string{
		"/data/ada/sales/orders/semantics":       `{"measures": [{"name": "Revenue", "function": "sum", "expression": "amount"}]}`,
		"/data/ada/sales/orders/inferDefinition": `{"dataDescription": "One row for each order", "schemaDefinition": {"amount": "Price in euros"}}`,
	} {
		put := call(t, http.MethodPut, s.url+path, bearer, body)
		require.Less(t, put.status, 300, put.body)
	}

	shared := call(t, http.MethodPost, s.url+"/permissions/datasets/ada/sales/orders/shares", bearer, `{"username": "ben", "role": "viewer"}`)
	require.Equal(t, http.StatusOK, shared.status, shared.body)

	kept := orders.verify(`{"question": "What is the revenue of $region?", "query": "SELECT sum(amount) AS revenue FROM orders WHERE region = $region",
		"parameters": [{"name": "region", "type": "varchar", "column": "orders.region", "default": "north"}]}`)
	asked := orders.asks("What is the total amount by region?", "")
	require.Equal(t, "answer", asked.Result.Outcome)
	orders.rated(asked.RunID, `{"thumbsUp": true, "comment": "right"}`)

	// Also record rows of a document and of a source, a long statement, a webhook and limits.
	made.Source = recordSource(orders, web)
	orders.beside("units", "").named("", "units.md", "# Units\n\n| unit | grams |\n|---|---|\n| box | 500 |\n| roll | 120 |\n")
	statement := orders.start("SELECT region, sum(amount) AS total FROM orders GROUP BY region ORDER BY region", "").await("completed")
	webhooks{t, s, bearer}.create(`{"url": "https://receiver.example/quern", "types": ["dataset.columnsChanged"]}`)
	s.quernd("limit", "set", "--user", "ada", "questions", "1000")

	for _, path := range []string{
		"/schema/ada/namespaces", "/schema/ada/sales/datasets", "/schema/datasets/all?q=order", "/schema/deleted",
		"/data/ada/sales/orders", "/data/ada/sales/orders/profile", "/data/ada/sales/orders/rows", "/data/ada/sales/orders/snapshots",
		"/data/ada/sales/orders/semantics", "/data/ada/sales/orders/inferDefinition", "/data/ada/sales/orders/ingestions",
		"/data/ada/sales/orders/ingestions/" + set.ID + "/setAside", "/data/ada/sales/customers", "/data/ada/sales/customers/rows",
		"/permissions/datasets/ada/sales/orders/shares", "/verified/ada/sales/" + kept.ID, "/query/runs", "/query/runs/" + asked.RunID,
		"/query/runs/" + asked.RunID + "/feedback", "/query/conversations", "/query/statements/" + statement.ID, "/connections", "/sources",
		"/data/ada/sales/prices/rows", "/data/ada/sales/units/rows", "/webhooks",
	} {
		answer := call(t, http.MethodGet, s.url+path, made.Owner, "")
		require.Equal(t, http.StatusOK, answer.status, "%s: %s", path, answer.body)
		made.Answers[path] = json.RawMessage(answer.body)
	}

	s.stop()
	require.NoError(t, os.MkdirAll(folder, 0o755))
	s.place.pack(filepath.Join(folder, "store.tar.gz"))

	dumped := filepath.Join(t.TempDir(), "database.sql")
	dump(t, s.databaseURL, dumped)

	content, err := os.ReadFile(dumped)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "database.sql.gz"), []byte(zipped(t, string(content))), 0o644))

	described, err := json.MarshalIndent(made, "", "  ")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "installation.json"), append(described, '\n'), 0o644))
}

// recordSource makes a source of two addresses, of which the server has one, loads it into the dataset prices, and returns its id.
func recordSource(beside *filled, web *addresses) string {
	beside.t.Helper()
	web.wanted = "Bearer " + addressToken
	web.put("a.csv", "n,price\n1,9.5\n2,3.25\n")

	connection := beside.s.connectAddresses(beside.t, beside.bearer, web, map[string]any{"token": addressToken})
	prices := beside.beside("prices", "")
	from := &sourceOf{filled: prices, web: web}

	var made sourced

	answer := call(prices.t, http.MethodPost, prices.s.url+"/sources", prices.bearer,
		fmt.Sprintf(`{"name": "prices", "connectionId": %q, "namespace": "sales", "datasetName": "prices", "paths": ["a.csv", "b.csv"]}`, connection))
	require.Equal(prices.t, http.StatusCreated, answer.status, answer.body)
	answer.json(prices.t, &made)

	from.id = made.ID
	require.Equal(prices.t, "completed", from.refresh().Status)
	require.Equal(prices.t, 2, prices.describe().RowCount)

	return made.ID
}

// continueSource lets the source of the earlier version load the file that is new, and only that one, with the token that is encrypted
// under the key of the installation. Then it changes the key.
func (i installation) continueSource(s *service, web *addresses) {
	s.t.Helper()
	web.wanted = "Bearer " + addressToken
	web.put("a.csv", "n,price\n1,9.5\n2,3.25\n")
	web.put("b.csv", "n,price\n3,1.75\n")

	from := &sourceOf{filled: &filled{s.t, s, i.Owner, "ada", "sales", "prices"}, web: web, id: i.Source}

	// No operation changes where a connection leads.
	s.exec(`UPDATE connections SET settings = settings || jsonb_build_object('baseUrl', $1::text, 'caCertificate', $2::text)`, web.server.URL+"/data/", web.ca)

	run := from.refresh()
	require.Equal(s.t, "completed", run.Status, run.Reason)
	require.EqualValues(s.t, 1, run.Files)
	require.Equal(s.t, 3, from.describe().RowCount)

	s.settings = append(s.settings, "QUERN_SOURCE_KEY=another key of an installation that tests upgrade", "QUERN_SOURCE_OTHER_KEY="+i.SourceKey)
	s.stop()
	s.restart()
	require.Contains(s.t, s.quernd("connection", "rewrap"), "1")
}

// pack writes all objects of the location to an archive.
func (p *place) pack(path string) {
	p.t.Helper()

	var packed bytes.Buffer

	archive := tar.NewWriter(&packed)

	for key := range p.objects() {
		object, err := p.client.GetObject(p.t.Context(), &s3.GetObjectInput{Bucket: &p.bucket, Key: new(p.prefix + key)})
		require.NoError(p.t, err)

		content, err := io.ReadAll(object.Body)
		require.NoError(p.t, errors.Join(err, object.Body.Close()))
		require.NoError(p.t, archive.WriteHeader(&tar.Header{Name: key, Mode: 0o644, Size: int64(len(content))}))

		_, err = archive.Write(content)
		require.NoError(p.t, err)
	}

	require.NoError(p.t, archive.Close())
	require.NoError(p.t, os.WriteFile(path, []byte(zipped(p.t, packed.String())), 0o644))
}

// locate returns the location with a prefix. Its objects are removed when the test ends.
func locate(t *testing.T, prefix string) *place {
	t.Helper()

	return emptied(placeAt(t, prefix))
}

// clear removes all objects of the location, and those that bind it to a database.
func (p *place) clear() {
	p.t.Helper()

	for _, key := range append(slices.Collect(maps.Keys(p.objects())), "epoch", "mark") {
		_, err := p.client.DeleteObject(p.t.Context(), &s3.DeleteObjectInput{Bucket: &p.bucket, Key: new(p.prefix + key)})
		require.NoError(p.t, err)
	}
}

// unpack writes the objects of an archive.
func (p *place) unpack(path string) {
	p.t.Helper()

	archive := tar.NewReader(strings.NewReader(string(unzipped(p.t, path))))

	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return
		}

		require.NoError(p.t, err)

		content, err := io.ReadAll(archive)
		require.NoError(p.t, err)
		p.put(header.Name, string(content))
	}
}

func unzipped(t *testing.T, path string) []byte {
	t.Helper()

	file, err := os.Open(path)
	require.NoError(t, err)

	defer file.Close()

	from, err := gzip.NewReader(file)
	require.NoError(t, err)

	content, err := io.ReadAll(from)
	require.NoError(t, err)

	return content
}
