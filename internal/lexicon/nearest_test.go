package lexicon

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNearest(t *testing.T) {
	t.Parallel()

	names := []string{"customer", "Customs", "amount", "created_at", "updated_at", "id", "größe", "orders", "orders_2025", "orders_2026"}

	for wanted, want := range map[string][]string{
		"custmer":                          {"customer"},
		"CUSTOMER":                         {"customer", "Customs"},
		"cusotmer":                         {"customer"},
		"amuont":                           {"amount"},
		"create_at":                        {"created_at"},
		"order":                            {"orders", "orders_2025", "orders_2026"},
		"grösse":                           {"größe"},
		"zzz":                              {},
		"":                                 {},
		"di":                               {"id"},
		"nothing at all like any of these": {},
	} {
		require.Equal(t, want, Nearest(wanted, names), wanted)
	}

	require.Empty(t, Nearest("x", nil))
}

func TestEditDistance(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"", "abc", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "abx", 1}, {"abc", "bc", 1}, {"kitten", "sitting", 3}, {"ca", "abc", 3}, {"größe", "grosse", 3},
	} {
		require.Equal(t, c.want, editDistance(c.a, c.b), "%s %s", c.a, c.b)
		require.Equal(t, c.want, editDistance(c.b, c.a), "%s %s", c.b, c.a)
	}
}

func FuzzNearest(f *testing.F) {
	f.Add("custmer", "customer,customs,id")
	f.Add("", "a,,b")
	f.Add("größe", "grösse,\xff")

	f.Fuzz(func(t *testing.T, wanted, names string) {
		if len(wanted)+len(names) > 1000 {
			return
		}

		known := strings.Split(names, ",")
		found := Nearest(wanted, known)
		require.LessOrEqual(t, len(found), MaxNearest)
		require.Subset(t, known, found)

		for _, name := range known {
			distance := editDistance(wanted, name)
			require.Equal(t, distance, editDistance(name, wanted))
			require.Equal(t, []rune(wanted) == nil && []rune(name) == nil || string([]rune(wanted)) == string([]rune(name)), distance == 0)
			require.LessOrEqual(t, distance, max(len([]rune(wanted)), len([]rune(name))))
		}
	})
}
