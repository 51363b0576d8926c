package values

import (
	"iter"
	"math/rand/v2"
	"strings"
)

// made returns distinct values that look like names of people, places and companies. The values are the same for the
// same seed.
func made(count int, seed uint64) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		var (
			dice   = rand.New(rand.NewPCG(seed, 1))
			starts = strings.Fields("b br c ch d dr f fr g gr h j k kl l m n p pr qu r s sch st t tr v w z")
			vowels = strings.Fields("a e i o u a e i o u a e i o u a e i o u ai ei au ou ie ea oo a e i o u a e i o u a e i o ä ö ü é")
			ends   = strings.Fields("n r l s t m nd rt ng ck ll ss x en er in on is us a o")
			seen   = map[string]bool{}
		)

		name := func() string {
			var b strings.Builder
			for range 1 + dice.IntN(3) {
				b.WriteString(starts[dice.IntN(len(starts))] + vowels[dice.IntN(len(vowels))])
			}

			word := b.String() + ends[dice.IntN(len(ends))]

			return strings.ToUpper(word[:1]) + word[1:]
		}

		first := make([]string, 3000)
		for i := range first {
			first[i] = name()
		}

		for len(seen) < count {
			value := name()

			switch dice.IntN(4) {
			case 0, 1:
				value = first[dice.IntN(len(first))] + " " + value
			case 2:
				value += " " + first[dice.IntN(50)] + " " + first[dice.IntN(len(first))]
			}

			if seen[value] {
				continue
			}

			seen[value] = true

			if !yield(Entry{Column: "name", Value: value, Count: 1 + int64(dice.IntN(100))}) {
				return
			}
		}
	}
}
