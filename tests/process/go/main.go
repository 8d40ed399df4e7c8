// A worker of cadenza's own, written with the official Go client: what people write every day, against
// the real server.
//
//	go-worker HOST:PORT [WORD]    runs the scenarios whose title contains the word
//
// The idea: each scenario is a sentence and a function that proves it; all of them run at once, on two
// workers of one task list, as a team's workflows do. What ended is replayed from its history
// afterwards: a history that cannot be replayed is a broken promise, whatever the result was.
package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

type scenario struct {
	title string
	prove func(*world) error
}

var scenarios = []scenario{
	{"the activities of a session run on one worker, and a session can be taken up again", proveSessions},
	{"a session is refused where no worker has room for it", proveFullSessions},
	{"a local activity is tried again, and may take longer than a decision", proveLocalActivities},
	{"side effects keep their value through every replay", proveSideEffects},
	{"a run goes on with the version of its code that it began with", proveVersions},
	{"queries are answered by open runs and by closed ones", proveQueries},
	{"a strong query sees the signal that was acknowledged before it", proveStrongQueries},
	{"children run side by side, and their failures reach the parent", proveChildren},
	{"a parent's end reaches its children as their policy says", proveParentClosePolicies},
	{"runs signal and cancel each other", proveExternalCalls},
	{"a child that continues as new is one child", proveChildContinues},
	{"an activity goes on where its last attempt fell silent", proveActivityRetries},
	{"an activity may be completed by somebody else", proveAsyncCompletion},
	{"a cancelled workflow stops its activity and cleans up", proveCancellation},
	{"two hundred activities run side by side", proveFan},
	{"signals come in their order, and start what is not there", proveSignals},
	{"a workflow continues as new with its memo and its headers", proveContinueAsNew},
	{"a long history is read in pages", proveLongHistory},
	{"a run that is reset forgets what came after", proveReset},
	{"a schedule gives each run what the last one left", proveCron},
	{"a run that fails is tried again", proveRunRetries},
	{"lists find runs by filters, by queries and page by page", proveLists},
	{"ends have the names that the client knows", proveEnds},
	{"a worker polls more under load, and less without, as the server hints", proveScaling},
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: go-worker HOST:PORT [WORD]")
		os.Exit(2)
	}
	word := ""
	if len(os.Args) > 2 {
		word = os.Args[2]
	}
	w := newWorld(os.Args[1])
	w.startWorkers()
	passed, failed := runScenarios(w, word)
	if err := w.replayAll(); err != nil {
		fmt.Println("FAILED every run that ended can be replayed:", err)
		failed++
	} else {
		fmt.Printf("ok every run that ended can be replayed (%d)\n", len(w.ended))
		passed++
	}
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 || passed < 2 {
		os.Exit(1)
	}
}

func runScenarios(w *world, word string) (passed, failed int) {
	var together sync.WaitGroup
	var lock sync.Mutex
	for _, one := range scenarios {
		if !strings.Contains(one.title, word) {
			continue
		}
		together.Add(1)
		go func() {
			defer together.Done()
			begin := time.Now()
			err := one.prove(w)
			lock.Lock()
			defer lock.Unlock()
			if err != nil {
				fmt.Printf("FAILED %s: %v\n", one.title, err)
				failed++
				return
			}
			fmt.Printf("ok %s (%.1f s)\n", one.title, time.Since(begin).Seconds())
			passed++
		}()
	}
	together.Wait()
	return passed, failed
}
