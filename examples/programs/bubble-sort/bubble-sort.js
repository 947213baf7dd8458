// Returns a sorted copy and leaves the input as it was.
function bubbleSort(input, isGreater = (a, b) => a > b) {
  const list = [...input];

  for (let i = list.length - 1; i > 0; i--) {
    let swaps = 0;

    for (let j = 0; j < i; j++) {
      if (isGreater(list[j], list[j + 1])) {
        [list[j], list[j + 1]] = [list[j + 1], list[j]];
        swaps++;
      }
    }

    if (swaps === 0) break;
  }

  return list;
}

const tasks = [
  { title: 'write report', priority: 3 },
  { title: 'fix login', priority: 1 },
  { title: 'buy coffee', priority: 2 },
];

const ordered = bubbleSort(tasks, (a, b) => a.priority > b.priority);
ordered.forEach((task) => console.log(`${task.priority}. ${task.title}`));

module.exports = bubbleSort;
