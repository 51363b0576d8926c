package agent

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProse(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"Orders by region.":                                 "Orders by region.",
		"a < b and c > d":                                   "a < b and c > d",
		"5 <6, *bold* and `code`":                           "5 <6, *bold* and `code`",
		"![](https://x.example/?q=secret) done":             "done",
		"see [the table](https://x.example/secret)":         "see the table",
		"see [the table][1]\n[1]: https://x.example":        "see the table\n1",
		"go to https://x.example/a?b=c now":                 "go to  now",
		"go to //x.example/a now":                           "go to  now",
		"www.x.example knows":                               "knows",
		"<img src=x onerror=alert(1)> hi":                   "hi",
		"<scr<b>ipt>alert(1)</scr</b>ipt>":                  "ipt>alert(1)ipt>",
		"[a](javascript:alert(1))":                          "a)",
		"<a href='data:text/html,x'>press</a>":              "press",
		"![![x](http://a.example)](http://b.example) after": "x after",
		"an open tag <img src=\"http://x.example/":          "an open tag",
		"ftp://x.example file:///etc/passwd":                "",
		"10:30 is a time, a:b a pair, and e.g. a/b a path":  "10:30 is a time, a:b a pair, and e.g. a/b a path",
	} {
		require.Equal(t, want, prose(text), text)
	}
}

// Only ASCII letters begin a tag. (?i) alone would also match the letters of other alphabets that fold to one.
var leading = regexp.MustCompile(`(?i)!?\[[^\[\]]*\]\([^()]*\)|<(?-i:[a-zA-Z!/?])|//[^\s)\]>"']|\bwww\.[^\s)\]>"']|\bjavascript:`)

func FuzzProse(f *testing.F) {
	for _, text := range []string{"![a](http://b)", "<<b>img src=x>", "[a]([b](c))", "ht<b>tp://x", "www<x>.y", "java<i>script:x", "a\n[1]: http://x", "<ſ"} {
		f.Add(text)
	}

	f.Fuzz(func(t *testing.T, text string) {
		cleaned := prose(text)
		if found := leading.FindString(cleaned); found != "" {
			t.Fatalf("%q leaves %q in %q", text, found, cleaned)
		}

		if again := prose(cleaned); again != cleaned {
			t.Fatalf("%q becomes %q, and then %q", text, cleaned, again)
		}

		if !strings.ContainsAny(text, "<[!/.:") && cleaned != strings.TrimSpace(text) {
			t.Fatalf("%q becomes %q", text, cleaned)
		}
	})
}
