import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;

/**
 * Flink SQL: prints the rows of the table of deploy/flink/orders.sql as it is at the end of the topic, one line each: key, statuses, total, time.
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
    Map<Object, Row> rows = new TreeMap<>();
    String query = "SELECT * FROM orders /*+ OPTIONS('scan.bounded.mode'='latest-offset') */";
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
