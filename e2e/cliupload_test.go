package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/e2e/kill"
)

// TestUploadResumeCLI kills an upload twice and checks that it resumes, and that no part is sent again after the store confirmed
// it. The file has 2 GiB in a full run, else 15 parts of 8 MiB.
func TestUploadResumeCLI(t *testing.T) {
	t.Parallel()

	parts := newPartCounter(t, newPlace(t).endpoint)
	s := start(t, "QUERN_S3_PUBLIC_ENDPOINT="+parts.server.URL)
	c := s.signedIn(t, value(t, call(t, http.MethodPost, s.url+"/user/tokens", s.realm.password("ada"), `{"name": "upload", "role": "owner"}`)))

	path := filepath.Join(c.home, "large.csv")

	size := int64(15 * 8 * mebibyte)
	if full() {
		size = 2048 * mebibyte
	}

	rows := writeCSV(t, path, size)
	info, err := os.Stat(path)
	require.NoError(t, err)

	total := int((info.Size() + 8*mebibyte - 1) / (8 * mebibyte))

	for round := range 2 {
		command := c.command("upload", path, "shop/large")
		written := &bytes.Buffer{}
		command.Stdout, command.Stderr = written, written

		require.NoError(t, command.Start())
		parts.afterParts(total*(round+1)/3, func() { _ = kill.Process(t, command.Process) })
		require.Error(t, command.Wait(), written.String())
		require.NotContains(t, written.String(), "Uploaded")
	}

	parts.afterParts(total+1, func() {})

	got := c.try("upload", path, "shop/large")
	require.Zero(t, got.code, got.out+got.err)
	require.Regexp(t, `Uploaded .*, [\d.]+ [MG]B of it earlier\.`, got.err)
	require.Contains(t, got.out, fmt.Sprintf("Loaded %s rows of 1 file into shop/large.", strings.TrimSpace(thousands(rows))))
	parts.requireOnce(t, total)

	left, err := os.ReadDir(filepath.Join(c.home, "uploads"))
	require.NoError(t, err)
	require.Empty(t, left, "what is loaded is forgotten")

	// A changed file is a new upload.
	small := filepath.Join(c.home, "small.csv")
	require.NoError(t, os.WriteFile(small, []byte("id\n1\n"), 0o600))
	c.run("upload", small, "shop/small")
	require.NoError(t, os.WriteFile(small, []byte("id\n1\n2\n"), 0o600))
	c.run("upload", "--replace", small, "shop/small")
	require.Contains(t, c.run("query", "-n", "shop", "SELECT count(*) AS n FROM small", "-o", "ndjson"), `{"n":2}`)

	playFolder(t, c)
}

func thousands(n int) string {
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}

	return text
}

// playFolder uploads a folder with 200 small files, which become two snapshots. If a file of the folder cannot be read, nothing
// is sent.
func playFolder(t *testing.T, c *cli) {
	t.Helper()

	folder := filepath.Join(c.home, "folder")
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "deep"), 0o700))

	for i := range 200 {
		require.NoError(t, os.WriteFile(filepath.Join(folder, "deep", fmt.Sprintf("%03d.csv", i)), fmt.Appendf(nil, "id\n%d\n", i), 0o600))
	}

	require.NoError(t, os.WriteFile(filepath.Join(folder, ".hidden"), []byte("x"), 0o600))

	lost := filepath.Join(folder, "lost.csv")
	require.NoError(t, os.Symlink("/nowhere", lost))

	got := c.try("upload", folder, "shop/many")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.err, lost)
	require.Contains(t, got.err, "Nothing was sent.")
	require.Equal(t, 5, c.try("dataset", "show", "shop/many").code)

	require.NoError(t, os.Remove(lost))

	printed := c.run("upload", folder, "shop/many")
	require.Equal(t, 2, strings.Count(printed, "Loaded 100 rows of 100 files"), printed)
	require.Contains(t, c.run("query", "-n", "shop", "SELECT count(DISTINCT id) AS n FROM many", "-o", "ndjson"), `{"n":200}`)
}
