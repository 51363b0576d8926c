package e2e

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"
)

// manifestLists matches the addresses of lists of manifests in metadata.
var manifestLists = regexp.MustCompile(`"manifest-list": "[^"]*"`)

// catalogLie is a way in which a catalog does not answer as it should, and how a run of a source ends because of it.
type catalogLie struct {
	what, status, reason string
	tell                 func(c *tableCatalog)
}

func catalogLies() []catalogLie {
	return []catalogLie{
		{"down", "failed", "did not answer as an Iceberg REST catalog", func(c *tableCatalog) {
			c.lie(func(string, []byte) (int, []byte) { return http.StatusServiceUnavailable, []byte("{}") })
		}},
		{"slow", "failed", "did not answer in time", func(c *tableCatalog) {
			c.lie(func(_ string, answer []byte) (int, []byte) {
				time.Sleep(4 * time.Second)

				return http.StatusOK, answer
			})
		}},
		{"not JSON", "failed", "did not answer as", func(c *tableCatalog) {
			c.lie(func(string, []byte) (int, []byte) { return http.StatusOK, []byte("<html>") })
		}},
		{"who are you", "failed", "refused the credentials", func(c *tableCatalog) {
			c.lie(func(string, []byte) (int, []byte) { return http.StatusForbidden, nil })
		}},
		{"a later version", "stopped", "version 3", func(c *tableCatalog) { c.replaced(`"format-version": 2`, `"format-version": 3`) }},
		{"manifests elsewhere", "stopped", "not in the bucket", func(c *tableCatalog) { c.replaced(`"manifest-list": "s3://`, `"manifest-list": "s3://other-`) }},
		{"manifests that are none", "stopped", "not in the format of Iceberg", func(c *tableCatalog) {
			c.lie(func(_ string, answer []byte) (int, []byte) {
				return http.StatusOK, []byte(manifestLists.ReplaceAllString(string(answer), `"manifest-list": "s3://`+c.there.bucket+"/"+c.there.prefix+`none"`))
			})
		}},
		{"a prefix that escapes", "failed", "did not answer as", func(c *tableCatalog) {
			c.lie(func(_ string, answer []byte) (int, []byte) {
				return http.StatusOK, []byte(strings.ReplaceAll(string(answer), "warehouses/main", "../../admin"))
			})
		}},
	}
}

// attachedLies attaches a table from catalogs that then go wrong. Each lie has a catalog of its own, because a run that fails is tried three times, with pauses.
func attachedLies(t *testing.T, s *service, liars []*tableCatalog, key *signer) {
	t.Helper()

	c, table, bearer := liars[0].with(t), "l.orders", key.token("patient")
	c.do("create", map[string]any{"table": table, "columns": numberedColumns})
	c.do("append", map[string]any{"table": table, "rows": numberedRows(1, 10)})

	var sources []*attached

	for _, liar := range liars {
		a := attach(t, s, liar.with(t), "patient", bearer, s.connectCatalog(t, bearer, liar, nil), table)
		a.requireSame(a.refresh())
		sources = append(sources, a)
	}

	then := sources[0].texts(c.read(table).Columns)

	c.do("append", map[string]any{"table": table, "rows": numberedRows(11, 10)})
	c.there.put("none", "Obj\x01 nothing")

	for n, one := range catalogLies() {
		t.Run(one.what, func(t *testing.T) {
			t.Parallel()

			a := sources[n].with(t)
			one.tell(a.catalog)

			run := a.refresh()
			require.Equal(t, one.status, run.Status, run.Reason)
			require.Contains(t, run.Reason, one.reason)
			require.ElementsMatch(t, then, a.texts([]string{"id", "name", "amount", "at"}), "the dataset stays as it was")

			answer := a.create(a.connection, table)
			require.Equal(t, http.StatusUnprocessableEntity, answer.status, answer.body)
			require.Contains(t, answer.body, one.reason)

			a.catalog.lie(nil)

			if run.Status == "stopped" {
				a.set(true)
			}

			a.requireSame(a.refresh())
		})
	}
}

// attachedSpoiled reads a file that is not what the table says.
func attachedSpoiled(t *testing.T, s *service, c *tableCatalog, key *signer) {
	t.Helper()

	table, bearer := "l.spoiled", key.token("spoiled")
	c.do("create", map[string]any{"table": table, "columns": numberedColumns})
	c.do("append", map[string]any{"table": table, "rows": numberedRows(1, 10)})

	a := attach(t, s, c, "spoiled", bearer, s.connectCatalog(t, bearer, c, nil), table)
	require.Equal(t, "completed", a.refresh().Status)

	var answer *answer

	// A profile may have read a file before it is spoiled, and the copy of the service is still good.
	next := 11
	await(t, "a file that is no copy is read", func() bool {
		c.do("append", map[string]any{"table": table, "rows": numberedRows(next, 1)})
		require.Equal(t, "completed", a.refresh().Status)

		next++

		for _, file := range c.read(table).Files {
			at := new(strings.TrimPrefix(file, "s3://"+c.there.bucket+"/"))
			_, err := c.there.client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &c.there.bucket, Key: at, Body: strings.NewReader("PAR1 not really PAR1")})
			require.NoError(t, err)
		}

		answer = a.statement("FROM shown")

		return answer.status != http.StatusOK
	})
	require.Equal(t, http.StatusUnprocessableEntity, answer.status, answer.body)
	require.Contains(t, answer.body, "cannot be read: ")
}
