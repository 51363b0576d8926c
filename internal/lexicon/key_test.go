package lexicon_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/lexicon"
)

func TestKey(t *testing.T) {
	t.Parallel()

	for text, folded := range map[string]string{
		"":                     "",
		"paris":                "paris",
		"PARIS":                "paris",
		"  New   York ":        "new york",
		"Saint-Étienne":        "saint etienne",
		"Zürich":               "zurich",
		"Zu\u0308rich":         "zurich",
		"Straße":               "strasse",
		"STRASSE":              "strasse",
		"STRAẞE":               "strasse",
		"Ærøskøbing":           "aeroskobing",
		"Łódź":                 "lodz",
		"Œuvre":                "oeuvre",
		"Þingvellir":           "thingvellir",
		"Đà Nẵng":              "da nang",
		"İstanbul":             "istanbul",
		"Diyarbakır":           "diyarbakir",
		"ﬁnance":               "finance",
		"ＡＢＣ":                  "abc",
		"Ⅳ":                    "iv",
		"m²":                   "m2",
		"Αθήνα":                "αθηνα",
		"Πειραιεύς":            "πειραιευσ",
		"Москва":               "москва",
		"Орёл":                 "орел",
		"C++":                  "c++",
		"C# / .NET":            "c# net",
		"R&D":                  "r d",
		"O'Brien":              "o brien",
		"Côte d’Ivoire":        "cote d ivoire",
		"\u6771\u4eac\u90fd":   "\u6771 \u4eac \u90fd",
		"トヨタ":                  "トヨタ",
		"ﾄﾖﾀ":                  "トヨタ",
		"が":                    "が",
		"서울":                   "서울",
		"दिल्ली":               "दिल्ली",
		"مُحَمَّد":             "محمد",
		"co\u00adoperate":      "cooperate",
		"---":                  "",
		"\xff\xfe":             "",
		"a\xffb":               "a b",
		"1,000.50":             "1 000 50",
		"foo_bar":              "foo bar",
		"Nguyễn Văn A":         "nguyen van a",
		"ĐẶNG":                 "dang",
		"naïve café":           "naive cafe",
		"\u0301":               "",
		"x\u0301\u0302\u0303y": "xy",
	} {
		require.Equal(t, folded, lexicon.Key(text), text)
		require.Equal(t, folded, lexicon.Key(folded), "folding again changes %q", folded)
	}
}
