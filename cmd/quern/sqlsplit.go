package main

import "strings"

// splitStatements returns the statements of a text that end with a semicolon, without it, and what follows them. Semicolons in
// texts, quoted names and comments end nothing.
func splitStatements(text string) (statements []string, rest string) {
	from := 0

	for at := 0; at < len(text); {
		if text[at] != ';' {
			at = skipPart(text, at)

			continue
		}

		if one := text[from:at]; !isBlank(one) {
			statements = append(statements, strings.TrimSpace(one))
		}

		at++
		from = at
	}

	return statements, text[from:]
}

// isBlank reports whether a text has only white space and comments.
func isBlank(text string) bool {
	for at := 0; at < len(text); {
		isComment := strings.HasPrefix(text[at:], "--") || strings.HasPrefix(text[at:], "/*")
		if !isComment && !strings.ContainsRune(" \t\r\n\f\v", rune(text[at])) {
			return false
		}

		at = skipPart(text, at)
	}

	return true
}

// skipPart returns the position after the text, name, comment or character at a position.
func skipPart(text string, at int) int {
	rest := text[at:]

	switch {
	case strings.HasPrefix(rest, "--"):
		return after(text, at, "\n")
	case strings.HasPrefix(rest, "/*"):
		return skipComment(text, at)
	case rest[0] == '\'':
		return skipQuoted(text, at, at > 0 && (text[at-1] == 'e' || text[at-1] == 'E'))
	case rest[0] == '"':
		return skipQuoted(text, at, false)
	case rest[0] == '$':
		if tag := dollarTag(rest); tag != "" {
			return after(text, at+len(tag), tag)
		}
	}

	return at + 1
}

// after returns the position after the next mark, or the end of the text.
func after(text string, at int, mark string) int {
	if i := strings.Index(text[at:], mark); i >= 0 {
		return at + i + len(mark)
	}

	return len(text)
}

// skipQuoted returns the position after a quoted part. A doubled quote is a character of it.
func skipQuoted(text string, at int, hasBackslashes bool) int {
	quote := text[at]

	for at++; at < len(text); at++ {
		switch {
		case hasBackslashes && text[at] == '\\':
			at++
		case text[at] != quote:
		case at+1 < len(text) && text[at+1] == quote:
			at++
		default:
			return at + 1
		}
	}

	return len(text)
}

// skipComment returns the position after a comment, which can contain comments.
func skipComment(text string, at int) int {
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

// dollarTag returns the mark that begins and ends a text such as $$it's$$ or $tag$it's$tag$; empty if there is none.
func dollarTag(rest string) string {
	end := strings.IndexByte(rest[1:], '$')
	if end < 0 {
		return ""
	}

	for i, r := range rest[1 : end+1] {
		isLetter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r > 127
		if !isLetter && (i == 0 || r < '0' || r > '9') {
			return ""
		}
	}

	return rest[:end+2]
}
