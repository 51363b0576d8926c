package lexicon_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/lexicon"
)

//nolint:gosmopolitan // people write in every script
func TestIndexWords(t *testing.T) {
	t.Parallel()

	for text, want := range map[string][]string{
		"":                       nil,
		" '&|!():*<->\\ ":        nil,
		"Müller & Söhne":         {"muller", "sohne"},
		"STRASSE Straße":         {"strasse", "strasse"},
		"e\u0301cole ÉCOLE":      {"ecole", "ecole"},
		"Łódź Øresund Ægir ıŞ":   {"lodz", "oresund", "aegir", "is"},
		"ｆｕｌｌ ① ﬁne":             {"full", "1", "fine"},
		"order_items-2024.v2":    {"order", "items", "2024", "v2"},
		"注文":                     {"注", "文", "注文"},
		"a注b":                    {"a", "注", "注", "b"},
		"Заказы ΟΔΟΣ":            {"заказы", "οδοσ"},
		"한국어 데이터":                {"한국어", "데이터"},
		"\x00a\xff\xfeb":         {"a", "b"},
		"😀 👩‍👩‍👧":                nil,
		strings.Repeat("x", 100): {strings.Repeat("x", lexicon.MaxLetters)},
	} {
		require.Equal(t, want, lexicon.IndexWords(text), "%q", text)
	}

	require.Equal(t, []string{"order", "Items", "2024"}, lexicon.Pieces("orderItems2024"))
	require.Nil(t, lexicon.Pieces("orders"))
	require.Equal(t, []string{"注文", "文一"}, lexicon.SearchWords("注文一"))

	for one, many := range map[string]string{
		"order": "orders", "box": "boxes", "house": "houses", "category": "categories", "address": "addresses", "Kunde": "Kunden", "Rechnung": "Rechnungen",
		"ciudad": "ciudades",
	} {
		forms := lexicon.Forms(lexicon.FoldWord(many))
		meets := func(form string) bool { return slices.Contains(forms, form) }
		require.True(t, slices.ContainsFunc(lexicon.Forms(lexicon.FoldWord(one)), meets), "%s %s", one, many)
	}
}
