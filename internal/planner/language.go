package planner

import (
	"strings"
	"unicode"
)

// foreign says which other language a question is in, "" if it is English or cannot be told. Words that English has
// too do not count.
func foreign(text string, tokens []token, known map[string]op) string {
	scripts := []struct {
		table *unicode.RangeTable
		name  string
	}{
		{unicode.Han, "Chinese"},
		{unicode.Hiragana, "Japanese"},
		{unicode.Katakana, "Japanese"},
		{unicode.Hangul, "Korean"},
		{unicode.Cyrillic, "Russian"},
		{unicode.Arabic, "Arabic"},
		{unicode.Hebrew, "Hebrew"},
		{unicode.Greek, "Greek"},
		{unicode.Thai, "Thai"},
		{unicode.Devanagari, "Hindi"},
	}

	letters, counts := 0, map[string]int{}

	for _, r := range text {
		if !unicode.IsLetter(r) {
			continue
		}

		letters++

		for _, s := range scripts {
			if unicode.Is(s.table, r) {
				counts[s.name]++
			}
		}
	}

	if counts["Japanese"] > 0 {
		counts["Japanese"] += counts["Chinese"]
		counts["Chinese"] = 0
	}

	for name, n := range counts {
		if 2*n > letters {
			return name
		}
	}

	return foreignWords(tokens, known)
}

func foreignWords(tokens []token, known map[string]op) string {
	languages := []struct{ name, words string }{
		{"German", "wie viele viel der die das den dem des und ist sind war waren hat haben im mit von für nach pro welche welcher welches wer wo wann zeige alle nicht gibt es wurden wurde durchschnittlich gesamt höchste zwischen"},
		{"French", "combien quel quelle quels quelles le la les des du et est sont dans par pour avec qui montre moyenne total plus nous avons été au aux une"},
		{"Spanish", "cuántos cuántas cuál cuáles el los las del y es son en por para con quién muestra promedio hay qué cuanto cuantos cuantas"},
		{"Italian", "quanti quante quanto qual quali il gli della dei delle e è sono nel per con chi mostra media"},
		{"Portuguese", "quantos quantas qual quais o os as da do dos das e é são em por para com quem mostre média"},
		{"Dutch", "hoeveel welke de het een en is zijn van voor met wie waar wanneer toon gemiddelde zijn er werden werd"},
	}

	english, best, most := 0, "", 0

	for _, t := range tokens {
		if _, ok := known[t.lower]; ok || isNoise(t.lower) {
			english++
		}
	}

	for _, l := range languages {
		n := 0

		for _, t := range tokens {
			if strings.Contains(" "+l.words+" ", " "+t.lower+" ") {
				n++
			}
		}

		if n > most {
			best, most = l.name, n
		}
	}

	if most >= 2 && most > english {
		return best
	}

	return ""
}
