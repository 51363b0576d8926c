package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// longest is the maximum length of the value of any setting, in characters.
const longest = 64 << 10

// format is a rule for a text, or for each text of a list.
type format struct {
	fits func(text string) bool
	must string
}

// formatOf returns the format with the given name. Its fits is nil if there is no such format.
func formatOf(name string) format {
	switch name {
	case "address":
		return format{isAddress, "must be host:port, such as 127.0.0.1:8080"}
	case "private":
		return format{isPrivate, "must be host:port with a loopback or private IP address, such as 127.0.0.1:8181"}
	case "origin":
		return format{isOrigin, "must be addresses without a path and without *, such as https://console.example.com"}
	case "host":
		return format{isHost, "must be names of hosts such as s3.example.com, s3.example.com:9000 or *.example.com"}
	case "name":
		return format{upTo(255, func(r rune) bool { return r > ' ' && r <= '~' }), "must be at most 255 characters, without spaces"}
	case "word":
		return format{upTo(64, isWord), "must be at most 64 lower-case letters, digits, - and _"}
	case "text":
		return format{upTo(255, unicode.IsPrint), "must be at most 255 characters, without control characters"}
	case "path":
		return format{upTo(4095, unicode.IsPrint), "must be the path of a file or folder"}
	default:
		return format{}
	}
}

// upTo returns a function that accepts texts that are not too long and have allowed characters only.
func upTo(most int, allowed func(rune) bool) func(string) bool {
	return func(text string) bool {
		return utf8.RuneCountInString(text) <= most && strings.IndexFunc(text, func(r rune) bool { return !allowed(r) }) < 0
	}
}

func isWord(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_' }

func isAddress(text string) bool {
	_, port, err := net.SplitHostPort(text)
	if err != nil {
		return false
	}

	_, err = strconv.ParseUint(port, 10, 16)

	return err == nil
}

// isHost accepts a host, with a port or without, and * as the first label of a name of at least three.
func isHost(text string) bool {
	if host, port, err := net.SplitHostPort(text); err == nil {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return false
		}

		text = host
	}

	if _, err := netip.ParseAddr(text); err == nil {
		return true
	}

	name, isDomain := strings.CutPrefix(text, "*.")
	isName := func(r rune) bool { return isWord(r) || r == '.' || r >= 'A' && r <= 'Z' }

	return name != "" && upTo(253, isName)(name) && !strings.HasPrefix(name, ".") && !strings.HasSuffix(name, ".") && (!isDomain || strings.Contains(name, "."))
}

// isPrivate reports whether text is an address that the internet cannot reach.
func isPrivate(text string) bool {
	address, err := netip.ParseAddrPort(text)

	return err == nil && (address.Addr().IsLoopback() || address.Addr().IsPrivate())
}

func isOrigin(text string) bool {
	origin, err := parseOrigin(text)

	return err == nil && string(origin) == text && !strings.Contains(text, "*")
}

// bounded checks a value against the tags of its setting: min and max for numbers, oneof and format for texts and lists
// of texts.
func (s setting) bounded(text string, parsed any) error {
	tag := s.field.Tag

	if utf8.RuneCountInString(text) > longest {
		return fmt.Errorf("must have at most %d characters", longest)
	}

	for _, bound := range []struct {
		tag, words string
		sign       int
	}{{"min", "at least", -1}, {"max", "at most", 1}} {
		limit, given := tag.Lookup(bound.tag)
		if !given {
			continue
		}

		of, err := parse(s.value.Interface(), limit)
		if err != nil {
			return fmt.Errorf("has a bound that cannot be read: %w", err)
		}

		if order(parsed, of) == bound.sign {
			return fmt.Errorf("must be %s %s", bound.words, limit)
		}
	}

	texts, isList := parsed.([]string)
	if !isList {
		texts = []string{text}
	}

	if allowed := strings.Fields(tag.Get("oneof")); len(allowed) > 0 {
		for _, one := range texts {
			if !slices.Contains(allowed, one) {
				return fmt.Errorf("must be one of: %s", strings.Join(allowed, ", "))
			}
		}
	}

	format := formatOf(tag.Get("format"))
	if format.fits != nil && slices.ContainsFunc(texts, func(one string) bool { return !format.fits(one) }) {
		return errors.New(format.must)
	}

	return nil
}

// order compares two numbers of the same type and returns -1, 0 or 1.
func order(a, b any) int {
	switch a := a.(type) {
	case int:
		b, _ := b.(int)

		return cmp.Compare(a, b)
	case float64:
		b, _ := b.(float64)

		return cmp.Compare(a, b)
	case Bytes:
		b, _ := b.(Bytes)

		return cmp.Compare(a, b)
	case time.Duration:
		b, _ := b.(time.Duration)

		return cmp.Compare(a, b)
	default:
		return 0
	}
}
