"""The query of a connector: analysed by Spark, and evaluated by Spark on the records of a task.

    driver   SparkQuery ─▶ DataFrame ─▶ plan, checked ─▶ temporary view
    slot     records ─▶ Arrow ─▶ the JVM: the view's expressions, row by row ─▶ Arrow ─▶ records

The rows are evaluated in Spark's JVM, which a slot reaches over the gateway of py4j. No Spark job
runs for them: a job takes tens of milliseconds, and a query that stays open holds rows back.
"""
