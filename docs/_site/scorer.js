// Ranks the search results of the site: pages that have the words in their title first, tasks before reference.
const WEIGHTS = [
  [/^how-to\/(rule|analysis|command|operator|kernel)$/, 1.2],
  [/^how-to\//, 1.5],
  [/^(decisions|rules)\/(?!index)/, 0.5],
  [/^format\/(types|rules|history)$/, 0.6],
  [/^(reference\/|(architecture|testing|new-release|releasing|changing-the-schema|changes-before-0\.1|index)$)/, 0.6],
];

var Scorer = {
  score: ([page, title, , , score]) => {
    const query = new URLSearchParams(window.location.search).get("q") || "";
    const words = query.toLowerCase().match(/[\w-]+/g) || [];
    const found = words.filter((word) => title.toLowerCase().includes(word.replace(/s$/, "")));
    const first = found.length > 0 && title.toLowerCase().startsWith(found[0].replace(/s$/, "")) ? 3 : 0;
    const [, weight] = WEIGHTS.find(([pages]) => pages.test(page)) || [null, 1];
    return (score + first + (10 * found.length) / Math.max(words.length, 1)) * weight;
  },

  // Sphinx's own numbers.
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
