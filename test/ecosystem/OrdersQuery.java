import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;

/**
 * Flink SQL: prints the table of deploy/flink/orders.sql as it is at the end of the topic: the count of its orders by an aggregate, then a line for each
 * row: key, statuses, total, time.
 * Arguments: the file with the statements.
 */
public class OrdersQuery {
  public static void main(String[] args) throws Exception {
    TableEnvironment table = TableEnvironment.create(EnvironmentSettings.inStreamingMode());
    for (String statement : Files.readString(Path.of(args[0])).split(";")) {
      String sql = statement.replaceAll("(?m)^\\s*--.*$", "").strip();
      if (sql.startsWith("SET")) {
        String[] parts = sql.split("'");
        table.getConfig().set(parts[1], parts[3]);
      } else if (!sql.isEmpty()) {
        table.executeSql(sql);
      }
    }
    String bounded = " FROM orders /*+ OPTIONS('scan.bounded.mode'='latest-offset') */";
    Object count = 0;
    try (var found = table.executeSql("SELECT COUNT(*)" + bounded).collect()) {
      while (found.hasNext()) {
        Row row = found.next();
        if (row.getKind() == RowKind.INSERT || row.getKind() == RowKind.UPDATE_AFTER) count = row.getField(0);
      }
    }
    System.out.println(count);
    Map<Object, Row> rows = new TreeMap<>();
    String query = "SELECT *" + bounded;
    try (var found = table.executeSql(query).collect()) {
      found.forEachRemaining(
          row -> {
            boolean isGone = row.getKind() == RowKind.DELETE;
            if (isGone) rows.remove(row.getField(0));
            else if (row.getKind() != RowKind.UPDATE_BEFORE) rows.put(row.getField(0), row);
          });
    }
    for (Row row : rows.values()) {
      StringBuilder line = new StringBuilder();
      for (int nth = 0; nth < row.getArity(); nth++) line.append(nth == 0 ? "" : "\t").append(row.getField(nth));
      System.out.println(line);
    }
  }
}
