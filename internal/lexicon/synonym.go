package lexicon

import "strings"

// synonyms are the words for one thing that people use in its stead in any trade. A word that means the same only in some
// trades, such as cafe for store, is not here: it belongs to the semantics of a dataset.
//
//nolint:gochecknoglobals // it is read only, and costly to make
var synonyms = func() map[string]string {
	known := map[string]string{}

	for _, words := range []string{
		"customer client buyer",
		"vehicle car automobile",
		"employee staff worker personnel",
		"shop store outlet",
		"brand make manufacturer",
		"product article",
		"supplier vendor",
		"telephone phone tel",
		"email mail",
		"mileage odometer",
		"city town",
		"country nation",
		"postcode zip",
		"salary wage",
		"doctor physician",
		"film movie",
		"student pupil",
		"teacher instructor",
		"gender sex",
		"invoice bill",
		"type kind method mode",
		"birthday birthdate",
		"purchase acquisition",
		"warehouse depot",
		"apartment flat",
		"lorry truck",
		"delivery shipment",
	} {
		list := strings.Fields(words)
		for _, w := range list {
			known[Stem(w)] = "=" + list[0]
		}
	}

	return known
}()

// Same returns one name for all stems that mean the same, and whether there is one. The name is not a stem, so that it is
// never taken for a word.
func Same(stem string) (name string, ok bool) {
	name, ok = synonyms[stem]

	return name, ok
}
