package lexicon

import "strings"

// Expand returns the words that an abbreviation in a name stands for, in lower case. It returns nil for a word that is
// not a usual abbreviation.
func Expand(word string) []string {
	switch word {
	case "qty", "qnty":
		return []string{"quantity"}
	case "amt":
		return []string{"amount"}
	case "dt":
		return []string{"date"}
	case "ts":
		return []string{"timestamp"}
	case "tm":
		return []string{"time"}
	case "yr":
		return []string{"year"}
	case "qtr":
		return []string{"quarter"}
	case "mth", "mon":
		return []string{"month"}
	case "hr", "hrs":
		return []string{"hours"}
	case "min", "mins":
		return []string{"minutes"}
	case "nm", "nme":
		return []string{"name"}
	case "cd":
		return []string{"code"}
	case "no", "nr", "num", "nbr":
		return []string{"number"}
	case "typ":
		return []string{"type"}
	case "perf":
		return []string{"performance"}
	case "cat", "categ", "ctg":
		return []string{"category"}
	case "grp":
		return []string{"group"}
	case "desc", "descr":
		return []string{"description"}
	case "stat", "sts":
		return []string{"status"}
	case "addr":
		return []string{"address"}
	case "tel":
		return []string{"telephone"}
	case "cust", "cst":
		return []string{"customer"}
	case "emp", "empl":
		return []string{"employee"}
	case "mgr":
		return []string{"manager"}
	case "dept", "dep":
		return []string{"department"}
	case "org":
		return []string{"organisation"}
	case "acct", "acc":
		return []string{"account"}
	case "inv":
		return []string{"invoice"}
	case "ord":
		return []string{"order"}
	case "prod":
		return []string{"product"}
	case "prj", "proj":
		return []string{"project"}
	case "pay", "pmt", "pymt":
		return []string{"payment"}
	case "pr":
		return []string{"price"}
	case "bkg":
		return []string{"booking"}
	case "res", "resv":
		return []string{"reservation"}
	case "wh", "whse":
		return []string{"warehouse"}
	case "ret":
		return []string{"return"}
	case "est":
		return []string{"estimated"}
	case "ins":
		return []string{"insurance"}
	case "loc":
		return []string{"location"}
	case "ctry":
		return []string{"country"}
	case "rgn":
		return []string{"region"}
	case "lab":
		return []string{"labour"}
	case "mech":
		return []string{"mechanic"}
	case "tech":
		return []string{"technician"}
	case "reg":
		return []string{"registration"}
	case "odo":
		return []string{"odometer"}
	case "veh":
		return []string{"vehicle"}
	case "supp", "suppl":
		return []string{"supplier"}
	case "vend":
		return []string{"vendor"}
	case "chk":
		return []string{"check"}
	case "avg":
		return []string{"average"}
	case "pct", "perc":
		return []string{"percent"}
	case "wt":
		return []string{"weight"}
	case "lvl":
		return []string{"level"}
	case "sz":
		return []string{"size"}
	case "pts":
		return []string{"points"}
	case "insp":
		return []string{"inspection"}
	case "dmg":
		return []string{"damage"}
	case "chan":
		return []string{"channel"}
	case "cls":
		return []string{"class"}
	case "mdl":
		return []string{"model"}
	case "tot":
		return []string{"total"}
	case "chg":
		return []string{"charge"}
	case "bal":
		return []string{"balance"}
	case "cap":
		return []string{"capacity"}
	case "comm":
		return []string{"commission"}
	case "dist":
		return []string{"distance"}
	case "dur":
		return []string{"duration"}
	case "mfr":
		return []string{"manufacturer"}
	case "pop":
		return []string{"population"}
	case "purch":
		return []string{"purchase"}
	case "val":
		return []string{"value"}
	case "vol":
		return []string{"volume"}
	case "prio":
		return []string{"priority"}
	case "sev":
		return []string{"severity"}
	case "loy":
		return []string{"loyalty"}
	case "disc":
		return []string{"discount"}
	case "act":
		return []string{"actual"}
	case "rt":
		return []string{"rate"}
	case "wk":
		return []string{"week"}
	case "yld":
		return []string{"yield"}
	case "prem":
		return []string{"premium"}
	case "maint":
		return []string{"maintenance"}
	case "lang":
		return []string{"language"}
	case "ph":
		return []string{"phone"}
	case "bldg":
		return []string{"building"}
	case "rm":
		return []string{"room"}
	case "br":
		return []string{"branch"}
	case "subj":
		return []string{"subject"}
	case "pkg":
		return []string{"package"}
	case "shpmt":
		return []string{"shipment"}
	case "trk":
		return []string{"truck"}
	case "drv":
		return []string{"driven"}
	case "equip":
		return []string{"equipment"}
	case "hosp":
		return []string{"hospital"}
	case "pn":
		return []string{"per", "night"}
	case "pm":
		return []string{"per", "month"}
	case "pa":
		return []string{"per", "year"}
	case "dob":
		return []string{"date", "birth"}
	case "fy":
		return []string{"fiscal", "year"}
	default:
		return nil
	}
}

// NameWords returns the words of a name in lower case, with abbreviations written out: quantity for qty, order date for
// ORDER_DT.
func NameWords(name string) (words []string) {
	for _, w := range splitName(name) {
		if long := Expand(w); long != nil {
			words = append(words, long...)
		} else {
			words = append(words, w)
		}
	}

	return words
}

const (
	leastPrefix   = 4 // letters of an abbreviation that is the beginning of a word: categ
	leastSkeleton = 3 // letters of an abbreviation without vowels: mgr
)

// Abbreviates reports whether a word of a name is a short form of another word: its beginning, or its first letter and
// some of its consonants in their order.
func Abbreviates(short, long string) bool {
	if len(long) < len(short)+2 || short == "" || short[0] != long[0] {
		return false
	}

	if len(short) >= leastPrefix && strings.HasPrefix(long, short) {
		return true
	}

	if len(short) < leastSkeleton || strings.ContainsAny(short[1:], "aeiou") {
		return false
	}

	at := 0

	for i := range len(short) {
		n := strings.IndexByte(long[at:], short[i])
		if n < 0 {
			return false
		}

		at += n + 1
	}

	return true
}
