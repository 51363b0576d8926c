package lexicon

import "strings"

// Language is a language other than English, with words that are frequent in questions.
type Language struct {
	Name  string // in English
	words string
}

// Languages returns the languages that are recognized by their words.
func Languages() []Language {
	return []Language{
		{"German", "wie viele viel der die das den dem des und ist sind war waren hat haben im mit von für nach pro welche welcher welches wer wo wann zeige alle nicht gibt es wurden wurde durchschnittlich gesamt höchste zwischen"},
		{"French", "combien quel quelle quels quelles le la les des du et est sont dans par pour avec qui montre moyenne total plus nous avons été au aux une"},
		{"Spanish", "cuántos cuántas cuál cuáles el los las del y es son en por para con quién muestra promedio hay qué cuanto cuantos cuantas"},
		{"Italian", "quanti quante quanto qual quali il gli della dei delle e è sono nel per con chi mostra media"},
		{"Portuguese", "quantos quantas qual quais o os as da do dos das e é são em por para com quem mostre média"},
		{"Dutch", "hoeveel welke de het een en is zijn van voor met wie waar wanneer toon gemiddelde zijn er werden werd"},
	}
}

// Has reports whether a word in lower case is one of the frequent words of the language.
func (l Language) Has(word string) bool { return strings.Contains(" "+l.words+" ", " "+word+" ") }
