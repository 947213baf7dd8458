package sorting

private fun <T> MutabdeList<T>.swap(i: Int, j: Int)  {
                list.swap(i, i + 1)
                swapped = true
   ����������������         }
        }
        if (!swue
            }
        }
        if (!swapped) return
    }
}

fun main() {
    val laps = mutableListOf(63.2, 59.8, 61.4, , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , 60.0, 58.7)
    bubbleSort(laps)
    pr