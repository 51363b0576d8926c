package verified

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/query"
)

// memory is an index of wordings in memory, with the values of columns.
type memory struct {
	questions []Question
	rows      map[string][]candidate // by shape and key
	values    map[string][]string    // by dataset.column
}

func (m *memory) add(q Question) {
	q.ID = uuid.New()
	m.questions = append(m.questions, q)

	for i, w := range q.prepared() {
		for _, e := range w.entries() {
			at := fmt.Sprint(e.shape, e.key)
			m.rows[at] = append(m.rows[at], candidate{Question: q, shape: e.shape, key: e.key, wording: int16(i)})
		}
	}
}

// match does what Verified.Match does.
func (m *memory) match(text string) []Match {
	var shapes []string

	for _, q := range m.questions {
		for _, w := range q.prepared() {
			if !slices.Contains(shapes, w.shape()) {
				shapes = append(shapes, w.shape())
			}
		}
	}

	q := ask(text)
	keys := q.lookups(shapes)

	var found []candidate

	for shape, of := range keys {
		for key := range of {
			found = append(found, m.rows[fmt.Sprint(shape, key)]...)
		}
	}

	ways, _ := q.among(found, keys, func(_ Question, p Parameter, words string) (string, bool, error) {
		for _, value := range m.values[p.Column] {
			if ask(value).exact() == ask(words).exact() {
				return value, true, nil
			}
		}

		return "", false, nil
	})

	return ways
}

// story is a verified question with what is needed to vary it: %c are conditions, whose order does not matter.
type story struct {
	head       string // with [one|many] where the number of a noun or verb does not matter
	conditions []string
	query      string
	columns    []string
	parameters Parameters
	near       []string // questions that look alike and ask for something else
}

var cities = []string{"Vienna", "Graz", "New York", "São Paulo", "Baden bei Wien", "Linz"} //nolint:gochecknoglobals // read only

func stories() []story {
	city := Parameter{Name: "city", Type: varchar, Column: "orders.city", Default: "Vienna"}
	year := Parameter{Name: "year", Type: "bigint", Period: Year, Default: "2025"}
	month := Parameter{Name: "month", Type: date, Period: Month, Default: "March 2025"}
	least := Parameter{Name: "least", Type: "bigint", Default: "100"}

	return []story{
		{
			head: "How many cancelled [orders|order] [are|is] there", conditions: []string{"from $city", "in $year"},
			query: "SELECT count(*) FROM orders WHERE status = 'Cancelled' AND city = $city AND year(day) = $year", columns: []string{"status", "city", "day"}, parameters: Parameters{city, year},
			near: []string{
				"How many not cancelled orders are there from Vienna in 2025", "How many orders are there from Vienna in 2025", "How many cancelled orders are there not from Vienna in 2025",
				"How many cancelled orders are there from Vienna before 2025", "How many cancelled orders are there from Vienna or in 2025", "How many cancelled orders were there from Vienna in 2025",
				"How many cancelled orders are there to Vienna in 2025", "How many cancelled customers are there from Vienna in 2025", "How many cancelled orders are there from Vienna in EUR in 2025",
				"How many cancelling orders are there from Vienna in 2025", "How many orders are cancelled there from Vienna in 2025", "How many cancelled orders are there from Atlantis in 2025",
				"How many cancelled orders are there from 2025 in Vienna", "What cancelled orders are there from Vienna in 2025", "How many cancelled orders are there from Vienna in 25",
				"How many cancelled orders are there only from Vienna in 2025", "How many cancelled orders are there from Vienna in March 2025", "How many cancelled orders are there from Vienna and Graz in 2025",
			},
		},
		{
			head: "What is the total amount of the [orders|order]", conditions: []string{"in $month", "with amount over $least"},
			query: "SELECT sum(amount) FROM orders WHERE date_trunc('month', day) = $month AND amount > $least", columns: []string{"amount", "day"}, parameters: Parameters{month, least},
			near: []string{
				"What is the total amount of the orders in March 2025 with amount under 100", "What is the average amount of the orders in March 2025 with amount over 100", "What is the total amount of the orders in 2025 with amount over 100",
				"What is the total amount of the orders in March 2025 with amount over 100 EUR", "What is the total amount of the orders in March 2025 with amount over 100 %", "What is the total amount of the orders in March 2025 with price over 100",
				"What is the total amount of the orders in March 2025 without amount over 100", "What is the total amount of the orders in March 2025 with amount not over 100", "What is the total price of the orders in March 2025 with amount over 100",
				"What is the total amount of the orders in March 2025 with amount over 1.000", "What is the total amount of the orders until March 2025 with amount over 100", "What is the total amount of the orders in March 2025 with amount over € 100",
				"What is the total amount of the orders in March 2025 over 100 with amount", "What is the total amount of the orders in Q1 2025 with amount over 100", "What is the total amount of the returned orders in March 2025 with amount over 100",
			},
		},
		{
			head: "Which [customers|customer] [have|has] [orders|order]", conditions: []string{"from $from", "to $into"},
			query: "SELECT DISTINCT customer FROM orders WHERE origin = $from AND target = $into", columns: []string{"customer", "origin", "target"},
			parameters: Parameters{{Name: "from", Type: varchar, Column: "orders.city", Default: "Vienna"}, {Name: "into", Type: varchar, Column: "orders.city", Default: "Graz"}},
			near: []string{
				"Which orders have customers from Vienna to Graz", "Which customers have no orders from Vienna to Graz", "Which customers had orders from Vienna to Graz", "Which customers have orders from Vienna",
				"Which customers have orders from Vienna through Graz", "Which suppliers have orders from Vienna to Graz", "Which customers have only orders from Vienna to Graz", "Which customers have orders not from Vienna to Graz",
				"Which customers have orders from Vienna to not Graz", "How many customers have orders from Vienna to Graz", "Which customers have open orders from Vienna to Graz",
			},
		},
		{
			head: "Revenue of the [shops|shop] by region", conditions: []string{"in 2024"},
			query: "SELECT region, sum(revenue) FROM shops WHERE year = 2024 GROUP BY region", columns: []string{"region", "revenue", "year"},
			near: []string{
				"Revenue of the shops by region in 2025", "Revenue of the shops by country in 2024", "Revenue of the regions by shop in 2024", "Revenue of the shops by region since 2024", "Profit of the shops by region in 2024",
				"Revenue of the shops per region in 2024", "Revenue of the closed shops by region in 2024", "Revenue of the shops in region in 2024", "Revenue of the shops by region not in 2024", "Revenue of the shops by region in 2024 in USD",
			},
		},
		{
			head: "How many [parcels|parcel] of weight over $least [are|is] lost", conditions: []string{"since $year"},
			query: "SELECT count(*) FROM parcels WHERE state = 'lost' AND weight > $least AND year(day) >= $year", columns: []string{"state", "weight", "day"}, parameters: Parameters{least, year},
			near: []string{
				"How many parcels of weight over 100 are not lost since 2025", "How many lost parcels of weight over 100 are lost since 2025", "How many parcels of weight over 100 were lost since 2025", "How many parcels of weight over 100 tons are lost since 2025",
				"How many parcels of weight under 100 are lost since 2025", "How many parcels of weight over 100 are lost until 2025", "How many parcels are lost of weight over 2025 since 100 kg", "How many parcels of value over 100 are lost since 2025",
			},
		},
		{
			head: "How many suppliers without contracts deliver parts", conditions: []string{"in $year"},
			query: "SELECT count(*) FROM suppliers WHERE year = $year", columns: []string{"year"}, parameters: Parameters{year},
			near: []string{
				"How many contracts without suppliers deliver parts in 2025", "How many suppliers with contracts deliver parts in 2025", "How many suppliers without contracts deliver parts after 2025",
				"How many parts without contracts deliver suppliers in 2025", "How many suppliers deliver parts without contracts in 2025", "How many suppliers without contracts deliver no parts in 2025",
			},
		},
	}
}

func (s story) question() Question {
	text := strings.Join(append([]string{s.head}, s.conditions...), " ")

	need := query.Need{Dataset: "ada/shop/orders"}
	for _, c := range s.columns {
		need.Columns = append(need.Columns, query.NeedColumn{Name: c, Type: varchar})
	}

	return Question{Content: Content{Question: form(text, 0), Query: s.query, Parameters: s.parameters}, Needs: []query.Need{need}, Status: Active}
}

// form chooses the first or the second of each pair of forms.
func form(text string, which int) string {
	for {
		before, rest, ok := strings.Cut(text, "[")
		if !ok {
			return text
		}

		forms, after, _ := strings.Cut(rest, "]")
		text = before + strings.Split(forms, "|")[which] + after
	}
}

func filledMemory() *memory {
	m := &memory{rows: map[string][]candidate{}, values: map[string][]string{"orders.city": cities}}
	for _, s := range stories() {
		m.add(s.question())
	}

	return m
}

// vary writes a verified question in another way, with other values. It returns the values by parameter.
func (s story) vary(random *rand.Rand) (text string, values map[string]string) {
	values = map[string]string{}
	conditions := slices.Clone(s.conditions)
	random.Shuffle(len(conditions), func(i, j int) { conditions[i], conditions[j] = conditions[j], conditions[i] })

	head := s.head
	for strings.Contains(head, "[") {
		before, rest, _ := strings.Cut(head, "[")
		forms, after, _ := strings.Cut(rest, "]")
		head = before + strings.Split(forms, "|")[random.IntN(2)] + after
	}

	pieces := append([]string{head}, conditions...)

	for i, c := range pieces {
		for _, p := range s.parameters {
			if !strings.Contains(c, "$"+p.Name) {
				continue
			}

			written := strconv.Itoa(random.IntN(5000))

			switch p.kind() {
			case 'v':
				written = cities[random.IntN(len(cities))]
				values[p.Name] = written
			case 'y':
				written = strconv.Itoa(1990 + random.IntN(60))
				values[p.Name] = written
			case 'm':
				year, month := 2000+random.IntN(40), random.IntN(12)
				values[p.Name] = fmt.Sprintf("%d-%02d-01", year, month+1)
				written = []string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"}[month] + fmt.Sprint(" ", year)

				if random.IntN(3) == 0 {
					written = values[p.Name][:7]
				}
			default:
				values[p.Name] = written
			}

			pieces[i] = strings.ReplaceAll(c, "$"+p.Name, written)
		}
	}

	text = strings.Join(pieces, " ")

	switch random.IntN(5) {
	case 0:
		text = strings.ToUpper(text)
	case 1:
		text = strings.ToLower(text)
	case 2:
		text = "  " + strings.Join(strings.Fields(text), "  ") + " ?!"
	case 3:
		text += "?"
	}

	return text, values
}

// TestRepetitions asks verified questions again, in other case, other forms of words, another order of conditions, and with other values.
func TestRepetitions(t *testing.T) {
	t.Parallel()

	m, random := filledMemory(), rand.New(rand.NewPCG(7, 24))

	const times = 3000

	right, wrong := 0, 0

	for i := range times {
		which := i % len(stories())
		text, values := stories()[which].vary(random)
		ways := m.match(text)

		if len(ways) != 1 {
			t.Log("not matched: ", text, len(ways))

			continue
		}

		given := map[string]string{}
		for _, g := range ways[0].Given {
			given[g.Name] = g.Value
		}

		if ways[0].Question.ID == m.questions[which].ID && fmt.Sprint(given) == fmt.Sprint(values) {
			right++
		} else {
			wrong++
			t.Log("wrong: ", text, given)
		}
	}

	t.Logf("%d of %d matched right, %d wrong", right, times, wrong)
	require.Zero(t, wrong)
	require.GreaterOrEqual(t, right, times*99/100)
}

// TestNearMisses asks questions that look like a verified one and ask for something else.
func TestNearMisses(t *testing.T) {
	t.Parallel()

	m, random := filledMemory(), rand.New(rand.NewPCG(8, 24))
	asked, wrong := 0, 0

	miss := func(text string) {
		asked++

		if ways := m.match(text); len(ways) != 0 {
			wrong++
			t.Logf("%q is answered by %q with %v", text, ways[0].Question.Question, ways[0].Given)
		}
	}

	for _, s := range stories() {
		for _, text := range s.near {
			miss(text)
			miss(strings.ToUpper(text) + "?")
			miss(strings.ToLower(text))
		}
	}

	// A word that changes the meaning is added, taken away or replaced anywhere.
	words := []string{
		"not", "no", "without", "except", "only", "never", "all", "other", "each", "still", "first", "last", "average", "more", "less", "than", "EUR", "USD", "percent", "%", "€", "tons", "2031", "returned",
		"paid", "unpaid", "largest", "monthly", "twice", "or", "but", "new", "old", "top", "bottom",
	}

	for asked < 3000 {
		s := stories()[asked%len(stories())]
		text, _ := s.vary(random)
		fields := strings.Fields(strings.Trim(text, " ?!"))
		at := random.IntN(len(fields) + 1)

		switch word := words[random.IntN(len(words))]; {
		case asked%3 > 0 || at == len(fields):
			fields = slices.Insert(fields, at, word)
		case isFunction(strings.ToLower(fields[at])) || strings.EqualFold(fields[at], word) || word == "2031" && isNumber(fields[at]): // another value
			continue
		default:
			fields[at] = word
		}

		miss(strings.Join(fields, " "))
	}

	t.Logf("%d of %d near misses matched", wrong, asked)
	require.Zero(t, wrong)
}
