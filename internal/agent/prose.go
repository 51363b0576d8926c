package agent

import (
	"regexp"
	"strings"
)

// What a model writes may have been put into its mouth by somebody's data. Whoever reads it shall not be made to fetch
// anything: no images, no links, no HTML.
var (
	markdownLink = regexp.MustCompile(`!?\[([^\[\]]*)\]\s*(\([^()]*\)|\[[^\[\]]*\]|:\s*\S+)`)
	htmlTag      = regexp.MustCompile(`<[!/?a-zA-Z][^<>]*>?`)
	address      = regexp.MustCompile(`(?i)(?:\b[a-z][a-z0-9+.-]*:)?//[^\s)\]>"']+|\bwww\.[^\s)\]>"']+|\b(?:javascript|data|mailto|vbscript):[^\s)\]>"']*`)
)

// rounds is how often something may come to light by taking something else out. Nobody writes like that by accident.
const rounds = 10

// prose leaves of a model's text what can be read, and nothing that leads elsewhere.
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
