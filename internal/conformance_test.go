package internal_test

import (
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestConformance checks docs/conformance.md: the tests and cases that it names exist, and the counts of its introduction are
// those of its rows.
func TestConformance(t *testing.T) {
	t.Parallel()

	sources := map[string]string{}

	for name, text := range files(t, ".go") {
		if strings.HasSuffix(name, "_test.go") {
			sources[path.Dir(name)] += text
		}
	}

	text := content(t, "docs/conformance.md")
	page := strings.Join(strings.Fields(text), " ") // lines are wrapped
	named := regexp.MustCompile("`([a-z0-9]+)` `(Test[A-Za-z0-9]+)`((?: \"[^\"]+\",?)*)").FindAllStringSubmatch(page, -1)
	require.Greater(t, len(named), 200)

	for _, one := range named {
		folder := "internal/" + one[1]
		if one[1] == "e2e" || one[1] == "api" {
			folder = one[1]
		}

		require.Regexp(t, `(?m)^func `+one[2]+`\(t \*testing\.T\)`, sources[folder], one[0])

		for _, found := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(one[3], -1) {
			_, session := os.Stat("../e2e/testdata/cli/" + found[1] + ".txt")
			_, play := os.Stat("../e2e/testdata/assistant/" + found[1] + ".golden")
			require.True(t, session == nil || play == nil || strings.Contains(sources[folder], `"`+found[1]+`"`), "%s: no case %q", one[0], found[1])
		}
	}

	counts := map[string]int{}
	rows := regexp.MustCompile(`(?m)^\| \d+ \|.*\| ([^|]+) \|$`).FindAllStringSubmatch(text, -1)

	for _, row := range rows {
		switch {
		case strings.Contains(row[1], "nothing to test"):
			counts["nothing"]++
		case strings.Contains(row[1], "no test yet") || strings.Contains(row[1], "in part"):
			counts["open"]++
		default:
			require.Contains(t, row[1], "`Test", row[0])
			counts["held"]++
		}
	}

	require.Zero(t, counts["open"], "the introduction says that there are none")
	require.Contains(t, page, "Of "+strconv.Itoa(len(rows))+" statements, "+strconv.Itoa(counts["held"])+" are held by tests. The other "+strconv.Itoa(counts["nothing"])+" are")
}
