package connection

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCheckPath(t *testing.T) {
	t.Parallel()

	base, err := url.Parse("https://data.example.com/exports%20of%202026/")
	require.NoError(t, err)

	web := &Web{base: *base}

	for text, want := range map[string]string{
		"a.csv": "a.csv", "2026/11/a.csv": "2026/11/a.csv", "a b.csv": "a%20b.csv", "ä.csv": "%C3%A4.csv", "a%2Fb.csv": "a%2Fb.csv", "a:b.csv": "a:b.csv",
		"https:a.csv": "https:a.csv", "export.csv?year=2026&x=%20": "export.csv?year=2026&x=%20", "a..csv": "a..csv", "user@host.csv": "user@host.csv",
	} {
		require.Empty(t, CheckPath(text), text)

		address, err := web.address(text)
		require.NoError(t, err, text)
		require.Equal(t, base.String()+want, address, text)
	}

	for _, text := range []string{
		"", "/", "/a.csv", "//evil.example/a.csv", "https://evil.example/a.csv", "../a.csv", "a/../../b.csv", "a/..", "./a.csv", "%2e%2e/a.csv", "a/%2E%2E/b.csv", "..%2fa.csv", "a//b.csv",
		"folder/", `..\a.csv`, "a%5cb.csv", "a.csv#part", "a%zz.csv", "a\n.csv", "a%0d%0aHost:x", "a%00.csv", "?only=query", strings.Repeat("a", maxPath+1),
	} {
		require.NotEmpty(t, CheckPath(text), text)
	}

	require.Equal(t, "x/a.csv", FileName("x/a.csv?y=/b.json"))
	require.Equal(t, "ä b.csv", FileName("%C3%A4%20b.csv"))
}

func TestUnfit(t *testing.T) {
	t.Parallel()

	page := "\n<!DOCTYPE html><html><body>Sign in</body></html>"

	for _, c := range []struct {
		name, media, encoding, content string
		fits                           bool
	}{
		{"a.csv", "text/csv", "", "n\n1\n", true},
		{"a.csv", "text/html; charset=utf-8", "", "n\n1\n", true}, // a script that does not say what it writes
		{"a.csv", "application/octet-stream", "identity", "n\n1\n", true},
		{"a.csv", "text/html; charset=utf-8", "", page, false},
		{"a.csv", "", "", "\xef\xbb\xbf" + page, false},
		{"a.csv", "text/csv", "", `<?xml version="1.0"?>` + page, false},
		{"export", "text/html", "", "<div>Sign in</div>", false},
		{"a.json", "text/html", "", page, false},
		{"a.json", "application/json", "", `{"a": 1}`, true},
		{"a.csv", "application/json", "", `{"error": "expired"}`, false},
		{"a.csv", "application/problem+json", "", ` [1]`, false},
		{"report.html", "text/html", "", page, true},
		{"a.parquet", "application/octet-stream", "", "PAR1...", true},
		{"a.parquet", "text/plain", "", "not here", false},
		{"a.csv", "text/csv", "gzip", "\x1f\x8b", false},
		{"a.csv.gz", "text/csv", "x-gzip", "\x1f\x8b", true},
		{"a.csv.gz", "text/html", "", page, false},
		{"a.csv", "text/csv", "", "", true},
	} {
		header := http.Header{"Content-Type": {c.media}, "Content-Encoding": {c.encoding}}
		require.Equal(t, c.fits, unfit(c.name, header, []byte(c.content)) == "", "%+v", c)
	}
}

func TestValidators(t *testing.T) {
	t.Parallel()

	now := time.Date(2026, 11, 19, 8, 0, 0, 0, time.UTC)
	old, young := now.Add(-time.Hour).Format(http.TimeFormat), now.Add(-time.Second).Format(http.TimeFormat)

	for _, c := range []struct {
		tag, modified string
		want          Validator
	}{
		{`"a"`, old, Validator{`"a"`, old}},
		{`W/"a"`, "", Validator{ETag: `W/"a"`}},
		{`""`, young, Validator{ETag: `""`}}, // it may change again in the same second
		{`a`, "yesterday", Validator{}},
		{"\"a\x01\"", "", Validator{}},
		{`"` + strings.Repeat("a", 501) + `"`, "", Validator{}},
	} {
		header := http.Header{"Etag": {c.tag}, "Last-Modified": {c.modified}, "Date": {now.Format(http.TimeFormat)}}
		require.Equal(t, c.want, validatorOf(header), "%+v", c)
	}

	require.Equal(t, Validator{}, validatorOf(http.Header{"Last-Modified": {old}}), "without the time of the server")
}
