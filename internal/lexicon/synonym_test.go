package lexicon_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/lexicon"
)

// TestSame checks that words for one thing have one name, which is not a stem.
func TestSame(t *testing.T) {
	t.Parallel()

	one, ok := lexicon.Same(lexicon.Stem("clients"))
	require.True(t, ok)

	other, ok := lexicon.Same(lexicon.Stem("customer"))
	require.True(t, ok)
	require.Equal(t, one, other)
	require.NotEqual(t, lexicon.Stem("customer"), one)

	for _, word := range []string{"guest", "order", "price", "cost", "revenue", "amount", "owner"} {
		_, ok = lexicon.Same(lexicon.Stem(word))
		require.False(t, ok, word)
	}
}

// TestAbbreviates checks which words of names are short forms of a word.
func TestAbbreviates(t *testing.T) {
	t.Parallel()

	for short, long := range map[string]string{"categ": "category", "mgr": "manager"} {
		require.True(t, lexicon.Abbreviates(short, long), short)
	}

	for short, long := range map[string]string{"rep": "repair", "cat": "category", "no": "notebook", "order": "orders", "date": "delivery", "": "category", "mngr": "ranger", "st": "status"} {
		require.False(t, lexicon.Abbreviates(short, long), short)
	}
}
