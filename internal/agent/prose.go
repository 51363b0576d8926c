package agent

import (
	"regexp"
	"strings"
)

// The text of a model can contain instructions or addresses that came from data. A reader's client must not be made to
// fetch anything: images, links and HTML are removed.
var (
	markdownLink = regexp.MustCompile(`!?\[([^\[\]]*)\]\s*(\([^()]*\)|\[[^\[\]]*\]|:\s*\S+)`)
	htmlTag      = regexp.MustCompile(`<[!/?a-zA-Z][^<>]*>?`)
	address      = regexp.MustCompile(`(?i)(?:\b[a-z][a-z0-9+.-]*:)?//[^\s)\]>"']+|\bwww\.[^\s)\]>"']+|\b(?:javascript|data|mailto|vbscript):[^\s)\]>"']*`)
)

// rounds is how many times prose repeats its replacements, because removing one construct can expose another. Text that
// needs more rounds is deliberately nested.
const rounds = 10

// prose returns the text of a model without links, addresses and HTML.
func prose(text string) string {
	for range rounds {
		cleaned := markdownLink.ReplaceAllString(text, "$1")
		cleaned = htmlTag.ReplaceAllString(cleaned, "")
		cleaned = strings.TrimSpace(address.ReplaceAllString(cleaned, ""))

		if cleaned == text {
			return text
		}

		text = cleaned
	}

	return strings.TrimSpace(strings.NewReplacer("<", "", "[", "", "]", "", "/", "", ":", "", ".", "").Replace(text))
}
