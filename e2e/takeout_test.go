package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestUserExport checks that the copy of all that a user has contains what was added through every door, and nothing of others and no secret.
func TestUserExport(t *testing.T) {
	t.Parallel()

	e := newErasure(t)
	secret := value(t, call(t, http.MethodPost, e.s.url+"/user/tokens", e.bearer, `{"name": "of the export"}`))
	digest := sha256.Sum256([]byte(secret))

	folder := filepath.Join(t.TempDir(), "copy")
	printed := e.s.quernd("user", "export", "ada", folder)
	require.Contains(t, printed, folder+" has all of ada: ")

	content := map[string]string{}

	require.NoError(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}

		info, err := entry.Info()
		require.NoError(t, err)
		require.Zero(t, info.Mode().Perm()&0o077, "%s: only the operator may read it", path)

		if entry.IsDir() {
			return nil
		}

		bytes, err := os.ReadFile(path)
		content[strings.TrimPrefix(path, folder+"/")] = string(bytes)

		return err
	}))

	var about struct {
		Username string
		Tables   map[string]int
		Files    int
		Missing  []string
	}

	require.NoError(t, json.Unmarshal([]byte(content["about.json"]), &about))
	require.Equal(t, "ada", about.Username)
	require.Empty(t, about.Missing)

	for _, table := range []string{"runs", "run_events", "run_feedback", "document_records", "document_corrections", "statements"} {
		require.Contains(t, content["tables/"+table+".jsonl"], e.canary, table)
	}

	files := map[string]int{}

	for path, text := range content {
		kind, _, _ := strings.Cut(path, "/")
		files[kind]++

		require.NotContains(t, text, neighbour, path)
		require.NotContains(t, text, secret, path)
		require.NotContains(t, text, hex.EncodeToString(digest[:]), path)

		if name, isTable := strings.CutSuffix(strings.TrimPrefix(path, "tables/"), ".jsonl"); isTable {
			require.Equal(t, about.Tables[name], strings.Count(text, "\n"), name)
		}
	}

	require.NotZero(t, files["uploads"])
	require.NotZero(t, files["runs"])
	require.Equal(t, about.Files, files["uploads"]+files["datasets"]+files["runs"])

	// The data files are the current ones. They can be loaded again.
	again := newFilled(t, e.s, "ada", e.bearer)

	for path, text := range content {
		if strings.HasPrefix(path, "datasets/"+e.namespace+"/orders/") {
			again.loaded(`"mode": "append", "accept": ["all"]`, text)
		}
	}

	count := fmt.Sprintf("SELECT count(*) AS n, count(*) FILTER (note = '%s') AS canaries FROM orders", e.canary)
	require.Equal(t, e.result(count, "").rows(), again.result(count, "").rows())

	// It is audited, and a folder that is not empty is refused.
	require.Contains(t, e.s.quernd("audit", "ada"), "account.export")

	_, err := e.s.command("user", "export", "ada", folder)
	require.ErrorContains(t, err, "The folder is not empty. Name a new one.")

	_, err = e.s.command("user", "export", "nobody", filepath.Join(t.TempDir(), "other"))
	require.ErrorContains(t, err, `There is no user "nobody".`)
}
