package query

import "strings"

// token is one part of a name in the text.
type token struct{ from, to int }

// chain returns the parts of a name in the text, which are separated by dots; nil if the text has other parts at the
// position.
func chain(text string, at int, parts []string) (tokens []token) {
	for i, part := range parts {
		if i > 0 {
			at = blank(text, at)
			if at >= len(text) || text[at] != '.' {
				return nil
			}

			at = blank(text, at+1)
		}

		to, name := word(text, at)
		if to < 0 || name != part {
			return nil
		}

		tokens = append(tokens, token{at, to})
		at = to
	}

	return tokens
}

// word returns the end and the value of the name at a position; -1 if there is none.
func word(text string, at int) (to int, name string) {
	if at < 0 || at >= len(text) {
		return -1, ""
	}

	if text[at] != '"' {
		for to = at; to < len(text) && isNameByte(text[to]); {
			to++
		}

		if to == at {
			return -1, ""
		}

		return to, text[at:to]
	}

	for to = at + 1; to < len(text); to++ {
		if text[to] != '"' {
			continue
		}

		if to++; to == len(text) || text[to] != '"' {
			return to, strings.ReplaceAll(text[at+1:to-1], `""`, `"`)
		}
	}

	return -1, ""
}

// blank returns the position after white space and comments.
func blank(text string, at int) int {
	for at < len(text) {
		switch rest := text[at:]; {
		case strings.ContainsRune(" \t\n\r\f\v", rune(rest[0])):
			at++
		case strings.HasPrefix(rest, "--"):
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				return len(text)
			}

			at += end
		case strings.HasPrefix(rest, "/*"):
			at = commentEnd(text, at)
		default:
			return at
		}
	}

	return at
}

// commentEnd returns the end of the comment at a position. Comments can contain comments.
func commentEnd(text string, at int) int {
	for depth := 0; at < len(text); at++ {
		switch rest := text[at:]; {
		case strings.HasPrefix(rest, "/*"):
			depth++
			at++
		case strings.HasPrefix(rest, "*/"):
			at++

			if depth--; depth == 0 {
				return at + 1
			}
		}
	}

	return len(text)
}
