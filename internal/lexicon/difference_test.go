package lexicon_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/lexicon"
)

func lowerWords(text string) (list []string) {
	for _, w := range lexicon.LowerWords(text) {
		list = append(list, w.Text)
	}

	return list
}

// TestWords shows how IndexWords, Key and LowerWords differ for the same text. Search documents contain the result of
// IndexWords and value indexes that of Key, so neither may change.
//
//nolint:gosmopolitan // people write in every script
func TestWords(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]struct{ index, key, lower string }{
		"Zürich 2024":         {"zurich 2024", "zurich 2024", "zürich 2024"},
		"Straße":              {"strasse", "strasse", "straße"},
		"C++ C#":              {"c c", "c++ c#", "c c"},                    // signs at the end of a word
		"co\u00adoperate":     {"co operate", "cooperate", "co operate"},   // characters that format
		"2½ m² Ⅳ":             {"21 2 m2 iv", "212 m2 iv", "2 m"},          // numbers that are no digits
		"¼x":                  {"1 4x", "14x", "x"},                        // a variant form that contains a sign
		"東京都":                 {"東 京 都 東京 京都", "東 京 都", "東京都"},             // Chinese and Japanese
		"トヨタ":                 {"ト ヨ タ トヨ ヨタ", "トヨタ", "トヨタ"},               // Katakana
		"เมือง":               {"เ ม ื อ ง เม มื ือ อง", "เมือง", "เมือง"}, // Thai
		"a\xffb":              {"a b", "a b", "a b"},                       // not UTF-8
		"x\u0301 \u0301y":     {"x y", "x y", "x\u0301 \u0301y"},           // accents
		"\u0903a":             {"\u0903a", "a", "\u0903a"},                 // a mark at the beginning
		"İstanbul Diyarbakır": {"istanbul diyarbakir", "istanbul diyarbakir", strings.ToLower("İstanbul Diyarbakır")},
	} {
		require.Equal(t, want.index, strings.Join(lexicon.IndexWords(text), " "), "IndexWords(%q)", text)
		require.Equal(t, want.key, lexicon.Key(text), "Key(%q)", text)
		require.Equal(t, want.lower, strings.Join(lowerWords(text), " "), "LowerWords(%q)", text)
	}

	long := strings.Repeat("x", 100)
	require.Equal(t, long[:lexicon.MaxLetters], lexicon.FoldWord(long))
	require.Equal(t, long, lexicon.Key(long))
}

// TestNames shows how the functions that divide a name into words differ for the same name.
func TestNames(t *testing.T) {
	t.Parallel()

	for name, want := range map[string]struct{ pieces, stems, singulars, letters string }{
		"orderItems":    {"order Items", "order item", "order item", "orderitems"},
		"order_items":   {"", "order item", "order item", "orderitems"},
		"orders2024":    {"orders 2024", "order 2024", "orders2024", "orders2024"},
		"2024orders":    {"2024 orders", "2024orders", "2024order", "2024orders"},
		"orders2024net": {"orders 2024 net", "order 2024net", "orders2024net", "orders2024net"},
		"HTTPCode":      {"", "httpcod", "httpcode", "httpcode"},
		"Größe (m²)":    {"m 2", "größ m", "größe m", "größem"},
		"":              {"", "", "", ""},
	} {
		var pieces []string
		for _, word := range lexicon.SplitWords(name) {
			pieces = append(pieces, lexicon.Pieces(word)...)
		}

		require.Equal(t, want.pieces, strings.Join(pieces, " "), "Pieces(%q)", name)
		require.Equal(t, want.stems, strings.Join(lexicon.NameStems(name), " "), "NameStems(%q)", name)
		require.Equal(t, want.singulars, strings.Join(lexicon.NameSingulars(name), " "), "NameSingulars(%q)", name)
		require.Equal(t, want.letters, lexicon.Letters(name), "Letters(%q)", name)
	}
}

// TestEndings shows how the functions that remove the ending of a word differ for the same word.
func TestEndings(t *testing.T) {
	t.Parallel()

	for word, want := range map[string]struct{ forms, stem, trimmed, singular string }{
		"orders":    {"orders order", "order", "order", "order"},
		"cities":    {"cities city citie citi", "city", "city", "city"},
		"ties":      {"ties tie", "tie", "tie", "ty"},
		"houses":    {"houses house hous", "hous", "house", "hous"},
		"addresses": {"addresses addresse address", "address", "addresse", "address"},
		"glass":     {"glass glas", "glass", "glas", "glass"},
		"bus":       {"bus", "bus", "bus", "bu"},
		"status":    {"status statu", "status", "statu", "statu"},
		"boxes":     {"boxes boxe box", "box", "boxe", "box"},
		"dishes":    {"dishes dishe dish", "dish", "dishe", "dishe"},
		"series":    {"series sery serie seri", "series", "sery", "sery"},
		"kunden":    {"kunden kunde kund", "kunden", "kunden", "kunden"},
		"ordered":   {"ordered", "order", "ordered", "ordered"},
		"stopping":  {"stopping", "stop", "stopping", "stopping"},
		"children":  {"children childre childr", "child", "children", "children"},
		"price":     {"price pric", "pric", "price", "price"},
		"":          {"", "", "", ""},
	} {
		require.Equal(t, want.forms, strings.Join(lexicon.Forms(word), " "), "Forms(%q)", word)
		require.Equal(t, want.stem, lexicon.Stem(word), "Stem(%q)", word)
		require.Equal(t, want.trimmed, lexicon.TrimPlural(word), "TrimPlural(%q)", word)
		require.Equal(t, want.singular, lexicon.Singular(word), "Singular(%q)", word)
	}

	for word, want := range map[string]string{
		"city":    "citys cityes cities citye cityn cityen cityer cityx",
		"knives":  "knivess knive kniveses kniv knif knife knivis knivese knivesn knivesen kniveser knivesnen knivesx",
		"frau":    "fraus fraues fraue fraun frauen frauer fraux",
		"chevaux": "chevauxs chevauxes chevauxe chevauxn chevauxen chevauxer chevauxnen chevauxx chevau cheval",
		"bus":     "buss buses",
		"al":      "",
		"":        "",
	} {
		require.Equal(t, want, strings.Join(lexicon.OtherEndings(word), " "), "OtherEndings(%q)", word)
	}
}

// TestLists shows which words are in one list of words with little meaning and not in another.
func TestLists(t *testing.T) {
	t.Parallel()

	for word, want := range map[string]struct{ stop, filler bool }{
		"the":    {true, true},
		"not":    {true, false}, // an operator of the planner
		"total":  {true, false},
		"table":  {false, true}, // a value can be a table
		"fur":    {true, false}, // stop words are folded
		"für":    {false, false},
		"orders": {false, false},
		"":       {false, false},
	} {
		require.Equal(t, want.stop, lexicon.IsStop(word), word)
		require.Equal(t, want.filler, lexicon.IsFiller(word), word)
	}

	for _, word := range []string{"meters", "hours", "km", "%"} {
		require.True(t, lexicon.IsMeasure(word), word)
	}

	require.Equal(t, "°C", lexicon.Unit("c"))
	require.False(t, lexicon.IsMeasure("c"))
	require.Equal(t, []int{9, 12}, lexicon.Scale("billion"))
	require.Equal(t, lexicon.Sums|lexicon.Shares, lexicon.Topics()["total"])
	require.Equal(t, lexicon.Rises|lexicon.Mosts, lexicon.Topics()["plus"])
	require.Equal(t, lexicon.Over, lexicon.Near("plus", "de"))
	require.Equal(t, lexicon.Exactly, lexicon.Near("more", "de"))
}

// FuzzWords checks that words are valid UTF-8 without spaces, at positions within the text.
func FuzzWords(f *testing.F) {
	for _, text := range []string{"", "Zürich, New York", "orderItems2024", "\xff\x00a", "ﷺ İı ½", "e\u0301\u0301 \u00ad"} {
		f.Add(text)
	}

	f.Fuzz(func(t *testing.T, text string) {
		at := 0

		for w := range lexicon.KeyWords(text) {
			require.True(t, w.Start >= at && w.Start < w.End && w.End <= len(text))
			require.NotContains(t, w.Text, " ")

			at = w.End
		}

		for _, word := range append(lexicon.IndexWords(text), lexicon.Key(text)) {
			require.True(t, utf8.ValidString(word))
		}

		for _, w := range lexicon.LowerWords(text) {
			require.Equal(t, strings.ToLower(text[w.Start:w.End]), w.Text)
		}

		for _, name := range [][]string{lexicon.NameStems(text), lexicon.NameSingulars(text), lexicon.SplitWords(text)} {
			require.NotContains(t, strings.Join(name, ""), " ")
		}
	})
}
