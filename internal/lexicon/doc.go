// Package lexicon contains what Quern knows about the words of natural languages: how texts are divided into words, in
// which form words are compared, which endings they have, and lists of words.
//
// Its callers compare words for different purposes, so there are several ways to do each of these:
//
//	            words of a text          words of a name          endings
//	catalog     IndexWords, SearchWords  SplitWords, Pieces       Forms            finds datasets
//	values      Key, KeyWords                                     OtherEndings     finds values
//	planner                              NameStems                Stem             interprets questions
//	grounding   LowerWords               NameSingulars            TrimPlural       checks answers
//	ingest                               Letters                  Singular         compares names of columns
//
// Lists of words that have a role only for one package, such as the operators of the planner, are in that package.
//
// Invariants:
//   - The database contains what SplitWords, FoldWord, IndexWords, Pieces and Forms return (dataset_search). If one of
//     them returns something else for any text, every document of dataset_search must be marked as stale.
//   - Value indexes contain what Key returns and leave out the words that IsStop reports. If one of them changes, the
//     version of the file must change.
//   - The functions are pure, accept any bytes, and are safe for concurrent use.
package lexicon
