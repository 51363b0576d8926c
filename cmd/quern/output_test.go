package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/signin"
)

// TestFitColumns checks that the widest columns are shortened first, then columns are dropped from the end, and that
// one always stays.
func TestFitColumns(t *testing.T) {
	t.Parallel()

	tests := []struct {
		widths, want []int
		room, left   int
	}{
		{[]int{10, 20}, []int{10, 20}, 32, 0},
		{[]int{10, 20}, []int{10, 18}, 30, 0},
		{[]int{30, 5, 30}, []int{15, 5, 16}, 40, 0},
		{[]int{30, 30, 30}, []int{8, 8, 8}, 20, 1},
		{[]int{30}, []int{8}, 3, 0},
	}

	for _, test := range tests {
		left := fitColumns(test.widths, test.room)
		require.Equal(t, test.left, left)
		require.Equal(t, test.want, test.widths)
	}
}

// TestHarmless checks that values cannot control a terminal, and that their width is computed correctly.
func TestHarmless(t *testing.T) {
	t.Parallel()

	screen := terminal{screen: true}
	require.Equal(t, "a\uFFFD[31mb\nc\uFFFD", screen.clean("a\x1b[31mb\nc\u202e"))
	require.Equal(t, "a↵b c\uFFFD", cell("a\nb\tc\x9b"))
	require.Equal(t, "a\x1bb", terminal{}.clean("a\x1bb"))

	require.Equal(t, 4, textWidth("東京")) //nolint:gosmopolitan // letters of two columns
	require.Equal(t, 4, textWidth("cafe\u0301"))
	require.Equal(t, "東…", cut("東京都", 4)) //nolint:gosmopolitan // letters of two columns
	require.Equal(t, "abc", cut("abc", 3))
	require.Equal(t, "one two\nthree\n\nfour", wrap("one two three\n\nfour", 8))
}

func TestFiguresForPeople(t *testing.T) {
	t.Parallel()

	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 999_500: "1.0 MB", 8 << 20: "8.4 MB", 2 << 30: "2.1 GB", 123_456_789: "123 MB"} {
		require.Equal(t, want, size(n))
	}

	require.Equal(t, "1,234,567", grouped(1234567))
	require.Equal(t, "1 row", counted(1, "row", "rows"))
	require.Equal(t, "1:05 min", remaining(65))
	require.Equal(t, "2:00 h", remaining(7200))
}

// TestBatches checks that a session has at most 100 files and 10,000 parts.
func TestBatches(t *testing.T) {
	t.Parallel()

	file := func(size int64) found { return found{UploadSource: api.UploadSource{Size: size}} }

	var many []found
	for range 201 {
		many = append(many, file(1))
	}

	require.Len(t, batches(many), 3)
	require.Len(t, batches([]found{file(6000 * partSize), file(4000 * partSize), file(1)}), 2)
	require.Len(t, batches([]found{file(20_000 * partSize), file(1)}), 2)
}

// TestCredentials checks that only the owner can read the file, even if its mode was changed before.
func TestCredentials(t *testing.T) {
	t.Parallel()

	p := &program{home: filepath.Join(t.TempDir(), "quern")}
	require.NoError(t, p.changeCredentials(func(c *credentials) { c.Current = "https://one" }))
	require.NoError(t, os.Chmod(p.credentialsPath(), 0o644))
	require.NoError(t, p.changeCredentials(func(c *credentials) { c.Servers["https://one"] = signIn{signin.Entry{Access: "a"}} }))

	info, err := os.Stat(p.credentialsPath())
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	kept, err := p.readCredentials()
	require.NoError(t, err)
	require.Equal(t, "https://one", kept.Current)
	require.Equal(t, "a", kept.Servers["https://one"].Access)

	for text, want := range map[string]string{"quern.test": "https://quern.test", "http://127.0.0.1:1/api/v1/": "http://127.0.0.1:1", "": ""} {
		require.Equal(t, want, serverAddress(text))
	}

	require.True(t, confidential("http://[::1]:8080"))
	require.False(t, confidential("http://localhost.example.org"))
}

func TestRounded(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"5641.109357218124": "5641.109357", "-5641.109357818124": "-5641.109358", "1.5": "1.5", "1.250000049": "1.25", "12": "12",
		"1.9999999999": "1.9999999999", "0.3333333333333333": "0.333333", "0.000012345678": "0.000012345678", "1.234567891e+30": "1.234567891e+30",
	} {
		require.Equal(t, json.Number(want), rounded(json.Number(text)), text)
	}

	for _, value := range []any{nil, "NaN", "1.123456789"} {
		require.Equal(t, value, rounded(value))
	}
}
