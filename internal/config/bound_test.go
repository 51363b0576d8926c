package config

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestBounds checks that every setting has bounds, that its default is within them, and that values beyond them are
// refused with a message that begins with the name of the setting and does not contain the value. A new setting without
// bounds fails here.
func TestBounds(t *testing.T) {
	t.Parallel()

	// Values that no setting of the format accepts.
	wrong := map[string][]string{
		"private": {"8080", "host:8080", "0.0.0.0:8181", ":8181", "8.8.8.8:8181", "[::]:8181", "127.0.0.1"},
		"address": {"8080", "host", "host:", "host:99999", "host:port"},
		"origin":  {"*", "https://*.example.com", "https://a.test/path", "https://a.test/", "a.test", "https://a.test,*"},
		"host":    {"*", "*.com", "https://a.test", "a.test/path", "a b", "a.*.test", "a.test:port", "a.test:99999", ".a.test", "user@a.test", "a.test,*"},
		"name":    {"a b", "a\x00", strings.Repeat("a", 256)},
		"word":    {"A", "a b", strings.Repeat("a", 65)},
		"text":    {"a\nb", strings.Repeat("a", 256)},
		"path":    {"a\x00b", strings.Repeat("a", 4096)},
	}

	for _, s := range documented() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()

			refuse := func(text, why string) {
				problems := fill([]setting{s}, func(name string) (string, bool) { return text, name == s.name })
				require.Len(t, problems, 1, "%q is accepted", text)
				require.ErrorContains(t, problems[0], s.name+" "+why)
				require.NotContains(t, problems[0].Error(), text+text)
			}
			accept := func(text string) {
				require.Empty(t, fill([]setting{s}, func(name string) (string, bool) { return text, name == s.name }))
			}

			tag := s.field.Tag
			if preset := tag.Get("default"); preset != "" {
				accept(preset)
				accept("") // means the default
			}

			switch sample := s.value.Interface().(type) {
			case bool:
				refuse("perhaps", "must be true or false")
			case int, float64, Bytes, time.Duration:
				accept(tag.Get("min"))
				accept(tag.Get("max"))
				refuse(beyond(t, sample, tag.Get("max"), 1), "must be at most "+tag.Get("max"))
				refuse("many", "is not")

				if below := beyond(t, sample, tag.Get("min"), -1); !strings.HasPrefix(below, "-") && below != "0" {
					refuse(below, "must be at least "+tag.Get("min"))
				} else {
					refuse("-1", "is not")
				}
			case string, []string:
				require.NotEqual(t, tag.Get("oneof") == "", tag.Get("format") == "", "it needs a format or the values that it may have")

				if tag.Get("oneof") != "" {
					refuse("something", "must be one of")

					break
				}

				require.NotNil(t, formatOf(tag.Get("format")).fits)
				require.Contains(t, wrong, tag.Get("format"))

				for _, text := range wrong[tag.Get("format")] {
					refuse(text, "must be")
				}
			case URL, Origin:
				refuse("ftp://a.test", "must be an http")
				refuse("http://"+strings.Repeat("a", longest), "must have at most")
			case []netip.Prefix:
				refuse("10.0.0.0", "is not a list of networks")
			case Secret:
				refuse(strings.Repeat("a", longest+1), "must have at most")
			default:
				require.Fail(t, "a type that this test does not know")
			}
		})
	}

	names := []string{}
	for _, s := range documented() {
		names = append(names, s.name)
	}

	require.Greater(t, len(names), 80)
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(names))), len(names))
}

// beyond returns the value one step beyond a bound.
func beyond(t *testing.T, sample any, bound string, step int) string {
	t.Helper()
	require.NotEmpty(t, bound, "it has no bound")

	of, err := parse(sample, bound)
	require.NoError(t, err)

	switch value := of.(type) {
	case time.Duration:
		return (value + time.Duration(step)).String()
	case float64:
		return fmt.Sprint(value + float64(step))
	default:
		return strconv.FormatInt(reflect.ValueOf(value).Int()+int64(step), 10)
	}
}
