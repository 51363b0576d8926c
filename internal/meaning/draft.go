package meaning

import (
	"slices"
	"strconv"
	"strings"

	"quern.dev/quern/internal/lexicon"
)

// Source is what a draft is made from: the profile of a dataset.
type Source struct {
	Name    string
	Rows    int64
	Columns []SourceColumn
	Keys    [][]string // sets of columns that are unique
	Joins   []SourceJoin
}

// SourceColumn is a column with information about its values. Distinct is 0 if the values are not known.
type SourceColumn struct {
	Name, Type, Description string

	Distinct, Nulls int64
	Min, Max        any   // number or text; nil if unknown
	Values          []any // most frequent values
}

// SourceJoin is a probable join of the profile.
type SourceJoin struct {
	Column string
	To     string // dataset
	Key    string
	Share  float64 // of the values of Column that occur in Key
	IsKey  bool    // Key is unique in To
}

// Draft returns the meaning that names and values suggest. Where they do not, a number is Unknown: its function must be
// said.
func Draft(d Source) Meaning {
	m := Meaning{Row: Row(d.Name), Columns: make(map[string]Column, len(d.Columns))}

	for _, j := range d.Joins {
		if j.IsKey && j.To != d.Name && identifies(d, j) && names(d, j) {
			m.Joins = append(m.Joins, Join{Columns: []string{j.Column}, To: j.To, Keys: []string{j.Key}})
		}
	}

	for _, c := range d.Columns {
		m.Columns[c.Name] = draftColumn(d, m.Joins, c)
	}

	if snapshots(d) {
		for name, c := range m.Columns {
			if c.Role == Amount || c.Role == Count || c.Role == Unknown {
				c.Role = Balance
				m.Columns[name] = c
			}
		}
	}

	return m
}

// identifies reports whether a column may refer to rows of another dataset: a text, or a number that is called like an
// identifier. Amounts and dates that are different in every row by chance do not.
func identifies(d Source, j SourceJoin) bool {
	i := slices.IndexFunc(d.Columns, func(c SourceColumn) bool { return c.Name == j.Column })
	if i < 0 || IsDate(d.Columns[i].Type) {
		return false
	}

	words := lexicon.NameWords(j.Column)

	return !IsNumber(d.Columns[i].Type) || len(words) > 0 && IsIDWord(words[len(words)-1]) || slices.Equal(stems(j.Column), stems(lastName(j.To)))
}

// stems returns the stems of a name, abbreviations written out.
func stems(name string) []string {
	return lexicon.NameStems(strings.Join(lexicon.NameWords(name), " "))
}

// names reports whether the name of a column says that it refers to the other dataset: both columns have the same name,
// or the column is called like the dataset and its key.
func names(d Source, j SourceJoin) bool {
	from, to := stems(j.Column), stems(j.Key)
	noun := stems(lastName(j.To))

	if isKeyOf(d, j.Column) && len(from) > 0 && slices.Equal(from, to) && slices.ContainsFunc(stems(lastName(d.Name)), func(w string) bool { return slices.Contains(from, w) }) {
		return false // the key of this dataset itself
	}

	bare := func(words []string) []string {
		return slices.DeleteFunc(slices.Clone(words), isIDStem)
	}

	switch {
	case slices.Equal(from, to):
		return len(bare(from)) > 0 && (len(bare(to)) < len(to) || isNameOf(to, noun)) || isOwnID(from)
	case isKeyedLike(bare(from), bare(to)):
		return true
	case len(bare(to)) == 0 || slices.Equal(bare(to), noun): // id, or customer_id in customers
		own := bare(from)

		return len(own) > 0 && slices.Equal(own[max(0, len(own)-len(noun)):], noun)
	default:
		return false
	}
}

// isOwnID reports whether a name alone identifies a thing in every dataset, as sku and isbn do.
func isOwnID(words []string) bool {
	return len(words) == 1 && (words[0] == "sku" || words[0] == "isbn" || words[0] == "iban")
}

// isNameOf reports whether a column names the rows of a dataset: dept or dept_name in departments. The city of a branch that
// is alone in its city does not name the branch.
func isNameOf(column, noun []string) bool {
	bare := slices.DeleteFunc(slices.Clone(column), func(w string) bool { return w == "nam" || w == "titl" })

	return len(bare) > 0 && slices.ContainsFunc(noun, func(w string) bool { return slices.Contains(bare, w) })
}

// isKeyedLike reports whether a column ends with what a key identifies: out_br and br_cd.
func isKeyedLike(from, key []string) bool {
	return len(key) > 0 && len(from) > len(key) && slices.Equal(from[len(from)-len(key):], key)
}

func isKeyOf(d Source, column string) bool {
	return slices.ContainsFunc(d.Keys, func(key []string) bool { return len(key) == 1 && key[0] == column })
}

func lastName(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// Rows returns the name of a dataset in words.
func Rows(dataset string) string { return strings.Join(lexicon.NameWords(lastName(dataset)), " ") }

// Row returns what one row of a dataset is, as far as its name says.
func Row(dataset string) string {
	words := lexicon.NameWords(lastName(dataset))
	if len(words) > 0 {
		words[len(words)-1] = lexicon.Singular(words[len(words)-1])
	}

	return strings.Join(words, " ")
}

// snapshots reports whether the rows repeat the state of things at moments.
func snapshots(d Source) bool {
	return slices.ContainsFunc(d.Columns, func(c SourceColumn) bool {
		words := lexicon.NameWords(c.Name)

		return IsDate(c.Type) && (slices.Contains(words, "snap") || slices.Contains(words, "snapshot") || slices.Contains(words, "asof") || slices.Contains(words, "stichtag") ||
			len(words) == 2 && words[0] == "as" && words[1] == "of")
	})
}

func draftColumn(d Source, joins []Join, c SourceColumn) Column {
	words := lexicon.NameWords(c.Name)
	one := Column{Role: roleOf(d, joins, c, words), Unit: UnitOf(c.Name)}

	return one
}

func roleOf(d Source, joins []Join, c SourceColumn, words []string) Role {
	has := func(list ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(list, w) })
	}

	if len(words) == 0 {
		words = []string{""}
	}

	isJoin := slices.ContainsFunc(joins, func(j Join) bool { return slices.Contains(j.Columns, c.Name) })
	isID := (IsIDWord(words[len(words)-1]) || IsIDWord(words[0]) && words[0] != "number" || strings.Contains(c.Name, "#"))

	switch {
	case IsDate(c.Type):
		return Date
	case isFlag(c):
		return Flag
	case isJoin:
		return Identifier
	case !IsNumber(c.Type):
		return textRole(d, c, words, isID)
	case isYears(c, words):
		return Year
	case isID && isKeyOf(d, c.Name):
		return Identifier
	case isID, has("zip", "postcode", "plz", "phone", "telephone", "rank", "position", "latitude", "longitude", "lat", "lon", "lng", "seed", "jersey", "lane", "channel", "stars", "star", "grade", "level"):
		return Code
	case has("percent", "percentage", "ratio", "share", "proz", "prozent", "margin", "discount", "satisfaction"):
		return Share
	case has("total") && has("price", "cost", "amount"):
		return Amount
	case has("stock", "inventory", "balance", "headcount", "bestand", "saldo", "hand"):
		return Balance
	case has("price", "rate", "each", "preis", "score", "rating", "temperature", "temp", "age", "speed", "height", "density", "index", "gpa", "average", "mean", "median", "moisture", "fare", "elevation", "altitude"),
		has("unit") && !has("units"), has("per") && !has("month", "year"):
		return Price
	case has("hours", "minutes", "seconds", "duration", "days", "nights", "runtime"):
		return Duration
	case has("quantity", "count", "units", "pieces", "pax", "seats", "rooms", "visits", "visitors", "clicks", "impressions", "tickets", "passengers", "members", "employees", "beds", "capacity", "menge", "anzahl", "attendance", "votes", "goals", "points", "wins", "losses", "games", "matches") || words[0] == "n" || words[0] == "number" && len(words) > 1:
		return Count
	case has("amount", "total", "revenue", "sales", "turnover", "cost", "costs", "budget", "actual", "spend", "spent", "spending", "expense", "expenses", "paid", "fee", "fees", "tax", "salary", "wage", "wages", "premium", "rent", "profit", "income", "payout",
		"value", "umsatz", "betrag", "kosten", "donation", "earnings", "net", "gross", "subtotal", "payment", "deposit", "gehalt", "miete"):
		return Amount
	case has("area", "weight", "distance", "volume", "length", "mass", "kg", "km", "ha", "tonnes", "litres", "flaeche", "fläche", "gewicht", "population", "mileage"):
		return Amount
	case isWhole(c.Type) && isPlural(words[len(words)-1]): // visits, signups
		return Count
	default:
		return Unknown
	}
}

func isPlural(word string) bool {
	return len(word) > 3 && strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss") && !strings.HasSuffix(word, "us") && !strings.HasSuffix(word, "is")
}

func isWhole(name string) bool {
	return strings.HasSuffix(strings.ToLower(name), "int") || strings.EqualFold(name, "integer")
}

const (
	fewValues = 60  // most different values of a category
	repeated  = 0.2 // most different values of a category, as a fraction of the rows
)

func textRole(d Source, c SourceColumn, words []string, isID bool) Role {
	switch {
	case isID && (isKeyOf(d, c.Name) || slices.ContainsFunc(words, func(w string) bool { return w == "id" || w == "uuid" || w == "guid" })):
		return Identifier
	case slices.Contains(words, "name") || slices.Contains(words, "title") && !slices.Contains(words, "job"):
		return Name
	case isID && float64(c.Distinct) > repeated*float64(d.Rows):
		return Code
	case c.Distinct > 0 && (c.Distinct <= fewValues && c.Distinct < d.Rows || float64(c.Distinct) <= repeated*float64(d.Rows)):
		return Category
	default:
		return Text
	}
}

// IsIDWord reports whether a word at the end of a name says that the column identifies something.
func IsIDWord(word string) bool {
	switch word {
	case "id", "ids", "number", "code", "key", "ref", "reference", "uuid", "guid", "sku", "isbn", "iban", "nummer":
		return true
	default:
		return false
	}
}

func isIDStem(stem string) bool { return IsIDWord(stem) || stem == "cod" || stem == "referenc" }

// isFlag reports whether a column says yes or no.
func isFlag(c SourceColumn) bool {
	if t := strings.ToLower(c.Type); t == "boolean" || t == "bool" {
		return true
	}

	yes, no := YesNo(c.Values)
	if words := lexicon.NameWords(c.Name); IsNumber(c.Type) && len(words) > 1 && (words[0] == "is" || words[0] == "has" || words[0] == "was") {
		return c.Distinct > 0 && c.Distinct <= 2 && isBit(c.Min) && isBit(c.Max)
	}

	return !IsNumber(c.Type) && c.Distinct == 2 && yes != nil && no != nil
}

func isBit(v any) bool { n, ok := toNumber(v); return ok && (n == 0 || n == 1) }

// YesNo returns the values that mean yes and no, nil if there is none.
func YesNo(values []any) (yes, no any) {
	for _, v := range values {
		s, ok := v.(string)
		if !ok {
			switch v {
			case true, 1.0:
				yes = v
			case false, 0.0:
				no = v
			}

			continue
		}

		switch strings.ToLower(strings.TrimSpace(s)) {
		case "y", "yes", "true", "t", "j", "ja":
			yes = v
		case "n", "no", "false", "f", "nein":
			no = v
		}
	}

	return yes, no
}

// IsNumber reports whether a type is a number.
func IsNumber(name string) bool {
	name, _, _ = strings.Cut(strings.ToLower(name), "(")

	switch strings.TrimSpace(name) {
	case "tinyint", "smallint", "integer", "int", "bigint", "hugeint", "float", "real", "double", "decimal", "numeric", "utinyint", "usmallint", "uinteger", "ubigint":
		return true
	default:
		return false
	}
}

// IsDate reports whether a type is a date or a timestamp.
func IsDate(name string) bool {
	name = strings.ToLower(name)

	return name == "date" || strings.HasPrefix(name, "timestamp")
}

func isYears(c SourceColumn, words []string) bool {
	least, ok := toNumber(c.Min)
	most, also := toNumber(c.Max)

	if !ok || !also || least < 1600 || most > 2100 || least != float64(int(least)) {
		return false
	}

	return slices.ContainsFunc(words, func(w string) bool {
		return w == "year" || w == "season" || w == "jahr" || w == "founded" || w == "established"
	})
}

func toNumber(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case string:
		n, err := strconv.ParseFloat(v, 64)

		return n, err == nil
	default:
		return 0, false
	}
}

// UnitOf returns the unit that a name contains, or "".
func UnitOf(name string) string {
	for _, w := range lexicon.NameWords(name) {
		switch w {
		case "eur", "usd", "gbp", "chf", "kg", "km", "ha", "t", "g", "m", "cm", "mm", "l", "ml", "kwh", "mwh", "percent", "km2", "m2", "hours", "minutes", "days", "seconds", "nights":
			return w
		case "proz":
			return "percent"
		}
	}

	return ""
}
