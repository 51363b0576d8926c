package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
)

// Secret holds a value that no log, error or dump prints; only Reveal returns it.
type Secret struct{ value string }

const redacted = "[secret]"

// NewSecret returns a Secret, for tests and for secrets that do not come from the environment.
func NewSecret(value string) Secret { return Secret{value: value} }

// Reveal returns the value.
func (s Secret) Reveal() string { return s.value }

// Format prints the same word for every verb, including %#v and %+v.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

func (s Secret) String() string               { return redacted }
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
func (s Secret) LogValue() slog.Value         { return slog.StringValue(redacted) }

// URL is an absolute http or https address, exactly as it was given.
type URL string

func parseURL(text string) (URL, error) {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return "", errors.New("must be an http or https address")
	}

	return URL(text), nil
}

// Origin is the scheme, host and port of an http or https address.
type Origin string

func parseOrigin(text string) (Origin, error) {
	text = strings.TrimSuffix(text, "/")

	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || text != u.Scheme+"://"+u.Host {
		return "", errors.New("must be an http or https address with scheme, host and port only")
	}

	return Origin(text), nil
}

// Bytes is a size: a number with an optional unit, KiB, MiB or GiB.
type Bytes int64

// ParseBytes parses a size.
func ParseBytes(text string) (Bytes, error) {
	number, factor := text, int64(1)

	for i, unit := range []string{"KiB", "MiB", "GiB"} {
		if rest, ok := strings.CutSuffix(text, unit); ok {
			number, factor = strings.TrimSpace(rest), int64(1)<<(10*(i+1))
		}
	}

	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n <= 0 || n > (1<<62)/factor {
		return 0, errors.New("is not a size such as 512KiB or 1MiB")
	}

	return Bytes(n * factor), nil
}
