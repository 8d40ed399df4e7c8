package main

// Lists of workflows and what they are found by.

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"go.uber.org/cadence/.gen/go/shared"
	"go.uber.org/cadence/workflow"
)

// shelfWorkflow puts itself onto a shelf, where queries find it, and stays there until it is told to go.
func shelfWorkflow(ctx workflow.Context, place int) (int, error) {
	err := workflow.UpsertSearchAttributes(ctx, map[string]interface{}{
		"CustomKeywordField": []string{"shelf", fmt.Sprint("place-", place)},
		"CustomIntField":     place,
	})
	if err != nil {
		return 0, err
	}
	workflow.GetSignalChannel(ctx, "go").Receive(ctx, nil)
	return place, nil
}

const (
	shelved = "CustomKeywordField = 'shelf'"
	books   = 7
)

func ids(executions []*shared.WorkflowExecutionInfo) string {
	var found []string
	for _, one := range executions {
		found = append(found, one.Execution.GetWorkflowId())
	}
	return strings.Join(found, ",")
}

func bookNames(from, to int) string {
	var names []string
	for i := from; i < to; i++ {
		names = append(names, fmt.Sprint("book-", i))
	}
	return strings.Join(names, ",")
}

func (w *world) countListed(query string) int64 {
	answer, err := w.client.CountWorkflow(w.context, &shared.CountWorkflowExecutionsRequest{Query: &query})
	if err != nil {
		return -1
	}
	return answer.GetCount()
}

// pages joins all pages of a list: what gives one page by its token.
func pages(page func(token []byte) ([]*shared.WorkflowExecutionInfo, []byte, error)) (string, error) {
	var all []*shared.WorkflowExecutionInfo
	var token []byte
	for {
		found, next, err := page(token)
		if err != nil {
			return "", err
		}
		all = append(all, found...)
		if token = next; len(token) == 0 {
			return ids(all), nil
		}
	}
}

func (w *world) listPages(query string) (string, error) {
	size := int32(2)
	return pages(func(token []byte) ([]*shared.WorkflowExecutionInfo, []byte, error) {
		answer, err := w.client.ListWorkflow(w.context, &shared.ListWorkflowExecutionsRequest{
			Query: &query, PageSize: &size, NextPageToken: token,
		})
		return answer.GetExecutions(), answer.GetNextPageToken(), err
	})
}

// scanPages are in no order: it sorts what it found.
func (w *world) scanPages(query string) (string, error) {
	size := int32(3)
	found, err := pages(func(token []byte) ([]*shared.WorkflowExecutionInfo, []byte, error) {
		answer, err := w.client.ScanWorkflow(w.context, &shared.ListWorkflowExecutionsRequest{
			Query: &query, PageSize: &size, NextPageToken: token,
		})
		return answer.GetExecutions(), answer.GetNextPageToken(), err
	})
	names := strings.Split(found, ",")
	sort.Strings(names)
	return strings.Join(names, ","), err
}

func everTime() *shared.StartTimeFilter {
	earliest, latest := int64(0), time.Now().Add(time.Hour).UnixNano()
	return &shared.StartTimeFilter{EarliestTime: &earliest, LatestTime: &latest}
}

func (w *world) openOfType(name string) (string, error) {
	size := int32(2)
	return pages(func(token []byte) ([]*shared.WorkflowExecutionInfo, []byte, error) {
		answer, err := w.client.ListOpenWorkflow(w.context, &shared.ListOpenWorkflowExecutionsRequest{
			StartTimeFilter: everTime(), TypeFilter: &shared.WorkflowTypeFilter{Name: &name},
			MaximumPageSize: &size, NextPageToken: token,
		})
		return answer.GetExecutions(), answer.GetNextPageToken(), err
	})
}

func (w *world) closedOfID(id string) (string, error) {
	answer, err := w.client.ListClosedWorkflow(w.context, &shared.ListClosedWorkflowExecutionsRequest{
		StartTimeFilter: everTime(), ExecutionFilter: &shared.WorkflowExecutionFilter{WorkflowId: &id},
	})
	if err != nil || len(answer.Executions) != 1 {
		return "", fmt.Errorf("%d closed runs of %s, %v", len(answer.GetExecutions()), id, err)
	}
	return fmt.Sprint(ids(answer.Executions), " ", answer.Executions[0].GetCloseStatus()), nil
}

func (w *world) knownTypes() (string, error) {
	answer, err := w.client.GetSearchAttributes(w.context)
	if err != nil {
		return "", err
	}
	return fmt.Sprint(answer.Keys["CustomKeywordField"], answer.Keys["CustomIntField"],
		answer.Keys["CustomDatetimeField"], answer.Keys["WorkflowID"]), nil
}

// fillShelf starts the books in their order and takes the first three away.
func (w *world) fillShelf() error {
	for i := 0; i < books; i++ {
		if _, err := w.start(options(fmt.Sprint("book-", i)), shelfWorkflow, i); err != nil {
			return err
		}
		time.Sleep(2 * time.Millisecond) // lists are ordered by start times of whole milliseconds
	}
	if err := w.until("the books to be listed", func() bool { return w.countListed(shelved) == books }); err != nil {
		return err
	}
	for i := 0; i < 3; i++ {
		if err := w.client.SignalWorkflow(w.context, fmt.Sprint("book-", i), "", "go", nil); err != nil {
			return err
		}
	}
	return w.until("three books to be gone", func() bool {
		return w.countListed(shelved+" and CloseTime != missing") == 3
	})
}

func proveLists(w *world) error {
	if err := w.fillShelf(); err != nil {
		return err
	}
	shelf := func(query string) func() (string, error) {
		return func() (string, error) { return w.listPages(query) }
	}
	for _, one := range []struct {
		want string
		ask  func() (string, error)
	}{
		{bookNames(0, books), shelf(shelved + " order by CustomIntField asc")},
		{bookNames(0, 3), shelf(shelved + " and CloseStatus = 'COMPLETED' order by StartTime asc")},
		{bookNames(4, 6), shelf("CustomIntField between 4 and 5 and CustomKeywordField in ('shelf', 'none') order by CustomIntField")},
		{"book-6", shelf("CustomKeywordField = 'place-6'")},
		{bookNames(0, books), func() (string, error) { return w.scanPages(shelved) }},
		{"book-6,book-5,book-4,book-3", func() (string, error) { return w.openOfType("main.shelfWorkflow") }},
		{"book-1 COMPLETED", func() (string, error) { return w.closedOfID("book-1") }},
		{"KEYWORD INT DATETIME KEYWORD", w.knownTypes},
	} {
		got, err := one.ask()
		if err != nil {
			return err
		}
		if err := same("a list", one.want, got); err != nil {
			return err
		}
	}
	return w.expectBadQuery()
}

// expectBadQuery is told where it is wrong; then the last books go.
func (w *world) expectBadQuery() error {
	query := "CustomIntField = 1 ORDR BY StartTime"
	_, err := w.client.ListWorkflow(w.context, &shared.ListWorkflowExecutionsRequest{Query: &query})
	if bad, is := err.(*shared.BadRequestError); !is || !strings.Contains(bad.Message, "ORDR") {
		return fmt.Errorf("a bad query: %v", err)
	}
	for i := 3; i < books; i++ {
		if err := w.client.SignalWorkflow(w.context, fmt.Sprint("book-", i), "", "go", nil); err != nil {
			return err
		}
	}
	return w.until("all books to be gone", func() bool {
		return w.countListed(shelved+" and CloseTime = missing") == 0
	})
}
