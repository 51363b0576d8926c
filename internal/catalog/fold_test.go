package catalog

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

//nolint:gosmopolitan // people write in every script
func TestFold(t *testing.T) {
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
		strings.Repeat("x", 100): {strings.Repeat("x", maxLetters)},
	} {
		require.Equal(t, want, foldAll(text), "%q", text)
	}

	require.Equal(t, []string{"order", "Items", "2024"}, pieces("orderItems2024"))
	require.Nil(t, pieces("orders"))
	require.Equal(t, []string{"注文", "文一"}, foldWanted("注文一"))

	for one, many := range map[string]string{
		"order": "orders", "box": "boxes", "house": "houses", "category": "categories", "address": "addresses", "Kunde": "Kunden", "Rechnung": "Rechnungen",
		"ciudad": "ciudades",
	} {
		require.True(t, meet(forms(fold(one)), forms(fold(many))), "%s %s", one, many)
	}

	for right, wrong := range map[string]string{"orders": "oders", "sales": "slaes", "region": "regiion", "amount": "amounr"} {
		require.True(t, meet(slips(right), slips(wrong)), "%s %s", right, wrong)
	}

	require.False(t, meet(slips("orders"), slips("boarder")))
}

func meet(a, b []string) bool {
	return slices.ContainsFunc(a, func(word string) bool { return slices.Contains(b, word) })
}

// FuzzSearchText: whatever somebody writes or looks for, PostgreSQL can read what is made of it.
//
//nolint:gosmopolitan // people write in every script
func FuzzSearchText(f *testing.F) {
	for _, text := range []string{"", "Orders 2024", "'; DROP TABLE x; --", "a & !b <-> 'c':*", "\x00\xff", "注文 한국어 ไทย", "ﷺ", "İı", "x\\'y", "é\u0301\u0301"} {
		f.Add(text)
	}

	f.Fuzz(func(t *testing.T, text string) {
		want := newWanted(text)
		made := searched{name: text, definition: Definition{DataDescription: text}, columns: []Column{{Name: text}}, values: []string{text}}.document()

		require.LessOrEqual(t, len(want.words), maxWords)

		for _, word := range append(want.words, strings.Fields(made)...) {
			word = strings.TrimPrefix(word, "'")
			require.True(t, utf8.ValidString(word))
			require.LessOrEqual(t, len(word), 2046, "longer than PostgreSQL takes")

			lexeme, _, _ := strings.Cut(word, "'")
			for _, r := range strings.TrimLeft(lexeme, "=<~+@") {
				require.True(t, unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r), "%q of %q", word, text)
			}
		}

		for _, sense := range want.senses(func(int) bool { return true }) {
			condition := sense.match
			require.Equal(t, strings.Count(condition, "("), strings.Count(condition, ")"))
			require.Zero(t, strings.Count(condition, "'")%2)
			require.NotContains(t, condition, `\`)
		}
	})
}
